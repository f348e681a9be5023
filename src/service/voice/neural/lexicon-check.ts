/**
 * Whether a voice model's lexicon is one: a word and its phonemes on each line, all of them in the model's tokens. The engine passes
 * over other lines and says nothing of it, so the voice would leave these words out.
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { brokenModel, type VoiceModel } from "./voice-models.ts";

/** Some published lexicons have a few lines that their model has no tokens for. */
const MOST_WRONG = 0.01;
const MAX_SHOWN = 20;
/** Models of MeloTTS have the tones of a word behind its phonemes. */
const TONE = /^\d+$/;

/** Throws voice_model_broken, with the file and the line of the first that is wrong. Reads the files whole. */
export function requireLexicon(model: VoiceModel): void {
  const { lexicon, tokens } = model.files;
  if (lexicon === undefined) return;
  const known = new Set(linesOf(tokens).map((line) => line.trim().split(/\s+/)[0] ?? ""));
  for (const path of lexicon.split(",")) {
    const lines = linesOf(path);
    const faults = lines.flatMap((line, index) => {
      const fault = faultOf(line, known);
      return fault === null ? [] : [{ line: index + 1, fault }];
    });
    const [first] = faults;
    if (first === undefined || faults.length <= lines.length * MOST_WRONG) continue;
    const others = faults.length === 1 ? "" : ` and ${faults.length - 1} more`;
    throw brokenModel(model, `line ${first.line} of its ${basename(path)} ${first.fault}${others}`);
  }
}

function faultOf(line: string, known: ReadonlySet<string>): string | null {
  const [word, ...phonemes] = line.trim().split(/\s+/);
  if (word === undefined || word === "") return null;
  if (phonemes.length === 0) return "has no phonemes behind its word";
  const unknown = phonemes.find((phoneme) => !known.has(phoneme) && !TONE.test(phoneme));
  return unknown === undefined
    ? null
    : `has ${JSON.stringify(unknown.slice(0, MAX_SHOWN))}, which is not in tokens.txt`;
}

function linesOf(path: string): string[] {
  return readFileSync(path, "utf8")
    .replace(/\r?\n$/, "")
    .split(/\r?\n/);
}
