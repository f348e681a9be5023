/** An item of a Markdown list, in lines that a person can read. */
const COLUMNS = 130;

export function listItem(text: string): string {
  const lines: string[] = [];
  let line = "-";
  for (const word of text.split(/\s+/)) {
    if (line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = " ";
    }
    line = `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}
