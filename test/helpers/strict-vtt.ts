/** A WebVTT file read as its specification writes it (W3C WebVTT, sections 4.1 to 4.4): anything else is an error. */

export interface StrictCue {
  readonly startMs: number;
  readonly endMs: number;
  /** The name of its `<v>`, or null. */
  readonly voice: string | null;
  /** Without tags and escapes. */
  readonly lines: readonly string[];
  /** Of its time tags, ms. */
  readonly tagsMs: readonly number[];
}

const TIME = /^(?:(\d{2,}):)?([0-5]\d):([0-5]\d)\.(\d{3})$/;
const TAG = /<([^>]*)>/g;

/** Throws with what is wrong. */
export function readStrictVtt(file: string): StrictCue[] {
  if (file.includes("\r") || file.includes("\0")) throw new Error("A carriage return or NUL");
  if (!file.startsWith("WEBVTT\n\n")) throw new Error("No WEBVTT with a blank line behind it");
  const body = file.slice("WEBVTT\n\n".length);
  if (body === "") return [];
  if (!body.endsWith("\n\n")) throw new Error("The last block is not ended");
  let lastStartMs = 0;
  return body
    .slice(0, -2)
    .split(/\n{2,}/)
    .map((block) => {
      const cue = readCue(block);
      if (cue.startMs < lastStartMs) throw new Error(`Cue at ${cue.startMs} is behind one at ${lastStartMs}`);
      lastStartMs = cue.startMs;
      return cue;
    });
}

function readCue(block: string): StrictCue {
  const [timing = "", ...payload] = block.split("\n");
  const [start = "", end = "", ...rest] = timing.split(" --> ");
  if (rest.length > 0) throw new Error(`Two arrows: ${timing}`);
  const [startMs, endMs] = [msOf(start), msOf(end)];
  if (endMs <= startMs) throw new Error(`Ends before it starts: ${timing}`);
  if (payload.length === 0 || payload.some((line) => line === "")) throw new Error(`Empty cue at ${timing}`);
  if (payload.some((line) => line.includes("-->"))) throw new Error(`An arrow in the text at ${timing}`);
  const text = payload.join("\n");
  const tagsMs: number[] = [];
  let voice: string | null = null;
  let before = startMs;
  for (const [, tag = ""] of text.matchAll(TAG)) {
    if (TIME.test(tag)) {
      const ms = msOf(tag);
      if (ms <= before || ms >= endMs) throw new Error(`Time tag ${tag} is not in its place in ${timing}`);
      before = ms;
      tagsMs.push(ms);
    } else if (tag.startsWith("v ") && tag.length > 2 && voice === null) voice = unescaped(tag.slice(2));
    else throw new Error(`Tag <${tag}> in ${timing}`);
  }
  const bare = text.replace(TAG, "");
  if (/[<>]/.test(bare)) throw new Error(`A bare < or > in ${timing}`);
  return { startMs, endMs, voice, tagsMs, lines: bare.split("\n").map(unescaped) };
}

function msOf(time: string): number {
  const match = TIME.exec(time);
  if (match === null) throw new Error(`No time: ${time}`);
  const [, hours = "0", minutes, seconds, ms] = match;
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(ms);
}

function unescaped(text: string): string {
  const bare = text.replaceAll(/&(amp|lt|gt|nbsp|lrm|rlm);/g, "");
  if (bare.includes("&")) throw new Error("A bare &");
  return text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&nbsp;", "\u00a0")
    .replaceAll("&amp;", "&");
}
