/** Reads a dialogue: a JSON array of {text, voice_id}, or lines `Voice: text`. Voices may be names or ids. */
import { usageError } from "../exit.ts";

export interface DialogueLine {
  /** As written: a name or an id. */
  readonly voice: string;
  readonly text: string;
}

/** Throws `invalid_config` with the line or entry that is wrong. */
export function parseDialogue(content: string, file: string): DialogueLine[] {
  const lines = content.trimStart().startsWith("[") ? fromJson(content, file) : fromLines(content, file);
  if (lines.length === 0)
    throw usageError(`Dialogue "${file}": empty, expected at least one line`, "dialogue");
  return lines;
}

function fromJson(content: string, file: string): DialogueLine[] {
  let entries: unknown;
  try {
    entries = JSON.parse(content);
  } catch (cause) {
    throw usageError(
      `Dialogue "${file}": no JSON: ${cause instanceof Error ? cause.message : cause}`,
      "dialogue",
    );
  }
  if (!Array.isArray(entries)) return [];
  return entries.map((entry: unknown, index) => {
    if (typeof entry === "object" && entry !== null && "text" in entry && typeof entry.text === "string") {
      const voice = "voice_id" in entry ? entry.voice_id : "voice" in entry ? entry.voice : undefined;
      if (typeof voice === "string" && voice !== "") return { voice, text: entry.text };
    }
    throw usageError(
      `Dialogue "${file}": entry ${index}, expected {"text": "...", "voice_id": "..."}`,
      "dialogue",
    );
  });
}

/** A line without a name goes on with the one before it, as in a play. */
function fromLines(content: string, file: string): DialogueLine[] {
  const lines: DialogueLine[] = [];
  for (const [index, raw] of content.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === "") continue;
    const match = /^([^:]{1,64}):\s+(\S.*)$/u.exec(line);
    const last = lines.at(-1);
    if (match?.[1] !== undefined && match[2] !== undefined)
      lines.push({ voice: match[1].trim(), text: match[2] });
    else if (last !== undefined) lines[lines.length - 1] = { ...last, text: `${last.text} ${line}` };
    else throw usageError(`Dialogue "${file}": line ${index + 1}, expected "Voice: text"`, "dialogue");
  }
  return lines;
}
