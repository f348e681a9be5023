/** Tables in Markdown, and numbers for them. */

/** Numbers stand at the right; the first `texts` columns have none. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], texts = 1): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, at) => (at < texts ? "---" : "--:"))), ...rows.map(line)].join("\n");
}

/** Three digits that count, with commas: 1,234 and 0.0123. */
export function number(value: number): string {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  if (digits > 0)
    return value
      .toFixed(Math.min(digits, 4))
      .replace(/(\.\d*?)0+$/, "$1")
      .replace(/\.$/, "");
  const rounded = 10 ** -(2 - Math.floor(Math.log10(Math.abs(value))));
  return whole(Math.round(value / rounded) * rounded);
}

export function whole(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

export const percent = (share: number): string => `${number(100 * share)} %`;
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
export const times = (factor: number): string => `${factor.toFixed(2)}x`;
