/** Recordings of sessions, read as `voicewire replay` reads them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Chain } from "../../src/recording/chain.ts";
import { type Recording, RecordingReader } from "../../src/recording/format.ts";

export function readLines(lines: readonly string[]): Recording {
  const chain = new Chain();
  const reader = new RecordingReader((json) => chain.next(json));
  for (const line of lines) reader.line(line);
  return reader.done();
}

/** All of a folder. */
export function recordingsIn(folder: string): Recording[] {
  return readdirSync(folder).map((name) =>
    readLines(readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1)),
  );
}
