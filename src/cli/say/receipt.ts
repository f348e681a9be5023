/** What say prints when it was interrupted, and where its time went: lines for people. */
import type { InterruptedEvent, Waterfall } from "../../protocol/events.ts";
import { safeText } from "../output/terminal-text.ts";

/** Shown of what was not heard; the rest is counted. */
const MAX_UNHEARD_CHARS = 160;

const SOURCES: Readonly<Record<InterruptedEvent["heard"]["source"], string>> = {
  mark: "by the marks that were played",
  ack: "as the player reported",
  estimate: "by estimate",
};

/** Two lines: what was heard, for how long and how that is known; what was not. */
export function renderReceipt({ heard, unheard_text: unheard }: InterruptedEvent): string {
  const known = `${SOURCES[heard.source]}, within ${Math.round(heard.bound_ms)} ms`;
  const lines = [`Interrupted after ${Math.round(heard.ms)} ms (${known})`, `Heard: ${quoted(heard.text)}`];
  if (unheard.trim() !== "") lines.push(`Not heard: ${clipped(unheard.trim())}`);
  return lines.join("\n");
}

function quoted(text: string): string {
  return `"${oneLine(text).trim()}"`;
}

function clipped(text: string): string {
  const characters = [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text)];
  if (characters.length <= MAX_UNHEARD_CHARS) return quoted(text);
  const shown = text.slice(0, characters[MAX_UNHEARD_CHARS]?.index);
  return `${quoted(shown)} and ${characters.length - MAX_UNHEARD_CHARS} characters more`;
}

function oneLine(text: string): string {
  return safeText(text).replace(/(?<!\s)\s*\n\s*/g, " ");
}

const STAGES: readonly (readonly [string, keyof Waterfall])[] = [
  ["text", "text_ms"],
  ["queued", "queued_ms"],
  ["connected", "connected_ms"],
  ["headers", "headers_ms"],
  ["first byte", "first_byte_ms"],
  ["first sound", "first_sound_ms"],
  ["first frame", "first_frame_ms"],
];

/** One line: each stage from the first character to the first frame, ms, and their sum. */
export function renderWaterfall(latency: Waterfall): string {
  const stages = STAGES.map(([name, key]) => `${name} ${tenths(latency[key] ?? 0)}`);
  const silence = latency.leading_silence_ms;
  const behind = silence === null ? "" : `; ${tenths(silence)} ms of silence before the first sound`;
  return `${stages.join(" + ")} = total ${tenths(latency.total_ms)} ms${behind}`;
}

function tenths(ms: number): string {
  return String(Math.round(ms * 10) / 10);
}
