/** The inputs that are kept: for each target those that reach most of its code, and every input that once broke it. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Target } from "./target.ts";

/** One input in each line, a JSON string of a character for each byte. */
const KEPT = "kept.jsonl";
/** Of the kept inputs of one target; all corpora together stay below 1 MB. */
const MAX_KEPT_BYTES = 12_288;

/** The target's seeds, and what is in the folder of its corpus. */
export function readCorpus(folder: string, target: Target): Buffer[] {
  const seeds = target.seeds.map((seed) => Buffer.from(seed));
  if (!existsSync(folder)) return seeds;
  const found = foundIn(folder).map((name) => readFileSync(join(folder, name)));
  const kept = join(folder, KEPT);
  if (!existsSync(kept)) return [...seeds, ...found];
  const lines = readFileSync(kept, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return [...seeds, ...found, ...lines.map((line) => Buffer.from(JSON.parse(line) as string, "latin1"))];
}

/** Inputs that are in the corpus because they broke the target. */
function foundIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.startsWith("found-"));
}

/** Keeps an input that broke the target. Returns its path. */
export function keepFound(folder: string, input: Uint8Array): string {
  mkdirSync(folder, { recursive: true });
  const name = `found-${createHash("sha256").update(input).digest("hex").slice(0, 12)}`;
  const path = join(folder, name);
  writeFileSync(path, input);
  return path;
}

/** Replaces the kept inputs; of many, the first ones are taken. */
export function writeKept(folder: string, inputs: readonly Buffer[]): void {
  mkdirSync(folder, { recursive: true });
  let bytes = 0;
  const lines: string[] = [];
  for (const input of inputs) {
    const line = `${JSON.stringify(input.toString("latin1"))}\n`;
    if (bytes + Buffer.byteLength(line) > MAX_KEPT_BYTES) continue;
    bytes += Buffer.byteLength(line);
    lines.push(line);
  }
  writeFileSync(join(folder, KEPT), lines.join(""));
}
