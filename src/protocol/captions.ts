/** Captions as files: WebVTT (W3C) and SubRip. Pure: cues in, text out. */

import type { Cue } from "../timing/cues/cue-builder.ts";
import type { CueWord } from "../timing/cues/cue-layout.ts";
import type { CueEvent, Word } from "./events.ts";

export interface VttOptions {
  /** Marks when each word is spoken (`<00:00:01.000>`), for players that light words up. */
  readonly hasWordTimes?: boolean;
}

export const VTT_HEADER = "WEBVTT\n\n";
/** The lookbehind keeps a long run from being looked at again from each of its characters. */
const OPENERS = /(?<![\p{Ps}\p{Pi}"'¿¡])[\p{Ps}\p{Pi}"'¿¡]+$/u;

/** One cue with the blank line behind it; files may be written cue by cue behind VTT_HEADER. */
export function vttCue(cue: Cue, options: VttOptions = {}): string {
  const { startMs, endMs } = boundsMs(cue);
  const lines =
    options.hasWordTimes === true ? linesWithTimes(cue) : cue.lines.map((line) => escapeVtt(line.text));
  const timing = `${formatMs(startMs, ".")} --> ${formatMs(endMs, ".")}`;
  const speaker = cue.voice?.speaker;
  // Without an end tag it holds for the whole cue.
  const voice = speaker === undefined ? "" : `<v ${keepFromArrow(escapeVtt(keepLine(speaker)))}>`;
  return `${timing}\n${voice}${lines.map(keepLine).join("\n")}\n\n`;
}

/** `number` counts from 1. */
export function srtCue(cue: Cue, number: number): string {
  const { startMs, endMs } = boundsMs(cue);
  const lines = cue.lines.map((line) => keepLine(escapeSrt(line.text)));
  const speaker = cue.voice?.speaker;
  const name = speaker === undefined ? "" : `${keepLine(escapeSrt(speaker))}: `;
  return `${number}\n${formatMs(startMs, ",")} --> ${formatMs(endMs, ",")}\n${name}${lines.join("\n")}\n\n`;
}

/** A `cue` event as what files are made of. `originMs`: where on the timeline a file's times begin. */
export function cueOfEvent(event: CueEvent, originMs = 0): Cue {
  const seconds = (ms: number): number => Math.max(0, ms - originMs) / 1000;
  const lines = event.lines.map(({ text, words }) => {
    const places = wordPlaces(text, words);
    const placed = words.flatMap((word, index): CueWord[] => {
      const at = places[index];
      if (at === undefined) return [];
      const { start, end } = word;
      const times = { startSeconds: seconds(word.start_ms), endSeconds: seconds(word.end_ms) };
      return [{ text: word.text, start, end, ...times, timing: "exact", at }];
    });
    return { text, words: placed };
  });
  const { voice_id: voiceId = "", speaker } = event;
  return {
    startSeconds: seconds(event.start_ms),
    endSeconds: seconds(event.end_ms),
    start: event.start,
    end: event.end,
    lines,
    voice: { voiceId, ...(speaker === undefined ? {} : { speaker }) },
  };
}

/** Where in a line the part of each of its words begins, opening marks included; undefined where it does not stand there. */
export function wordPlaces(line: string, words: readonly Pick<Word, "text">[]): (number | undefined)[] {
  let from = 0;
  return words.map(({ text }) => {
    const at = line.indexOf(text, from);
    if (at < 0) return undefined;
    const before = OPENERS.exec(line.slice(from, at))?.[0].length ?? 0;
    from = at + text.length;
    return at - before;
  });
}

/** A cue has to end after it starts, also once rounded. */
function boundsMs(cue: Cue): { startMs: number; endMs: number } {
  const startMs = toMs(cue.startSeconds);
  return { startMs, endMs: Math.max(toMs(cue.endSeconds), startMs + 1) };
}

/** A time tag must lie inside the cue and behind the tag before it; a word at the cue's start needs none. */
function linesWithTimes(cue: Cue): string[] {
  const { startMs, endMs } = boundsMs(cue);
  let lastMs = startMs;
  return cue.lines.map((line) => {
    let shown = "";
    let from = 0;
    for (const word of line.words) {
      shown += escapeVtt(line.text.slice(from, word.at));
      from = word.at;
      const ms = toMs(word.startSeconds);
      if (ms <= lastMs || ms >= endMs) continue;
      shown += `<${formatMs(ms, ".")}>`;
      lastMs = ms;
    }
    return shown + escapeVtt(line.text.slice(from));
  });
}

/** Escaping `>` too keeps the arrow `-->` out of the text. */
function escapeVtt(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** A name that ends in `--` would make an arrow with the end of its tag; players take the blank away again. */
function keepFromArrow(name: string): string {
  return name.endsWith("-") ? `${name} ` : name;
}

/** SubRip has no escapes: a word joiner keeps players from taking text for a tag or for a timing line. */
function escapeSrt(text: string): string {
  return text.replaceAll(/<(?=[A-Za-z/])/g, "<\u2060").replaceAll("-->", "--\u2060>");
}

/** A line break or a blank line would end the cue. */
function keepLine(line: string): string {
  const kept = line.replace(/[\r\n\u2028\u2029]+/g, " ");
  return kept.trim() === "" ? "\u00a0" : kept;
}

function toMs(seconds: number): number {
  return Math.max(Math.round(seconds * 1000), 0);
}

/** `01:02:03.004`; hours have two digits or more. */
function formatMs(ms: number, separator: "." | ","): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const clock = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map((value) => two(Math.floor(value)));
  return `${clock.join(":")}${separator}${String(ms % 1000).padStart(3, "0")}`;
}
