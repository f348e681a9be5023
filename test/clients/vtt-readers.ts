/** WebVTT as webvtt-parser (the W3C's checker) and media-captions (a player's parser) read it, who have to agree. */
import { importFrom, load } from "./installed.ts";

/** A cue as it is shown. Times are whole milliseconds. */
export interface SeenCue {
  readonly startMs: number;
  readonly endMs: number;
  /** Of its `<v>`, or null. */
  readonly voice: string | null;
  /** Without tags and escapes. */
  readonly text: string;
}

interface CheckedNode {
  readonly type: "text" | "object" | "timestamp";
  readonly name?: string;
  readonly value?: string | number;
  readonly children?: readonly CheckedNode[];
}
interface Checker {
  readonly WebVTTParser: new (
    entities: object,
  ) => {
    parse(
      file: string,
      mode: "captions",
    ): {
      readonly cues: readonly { startTime: number; endTime: number; tree: CheckedNode }[];
      readonly errors: readonly { readonly message: string; readonly line: number }[];
    };
  };
}

interface PlayedNode {
  readonly type: string;
  readonly data?: string;
  readonly voice?: string;
  readonly children?: readonly PlayedNode[];
}
interface PlayedCue {
  readonly startTime: number;
  readonly endTime: number;
}
interface Player {
  parseText(
    file: string,
    options: { readonly type: "vtt"; readonly strict: boolean },
  ): Promise<{ readonly cues: readonly PlayedCue[]; readonly errors: readonly { message: string }[] }>;
  tokenizeVTTCue(cue: PlayedCue): readonly PlayedNode[];
}

const ms = (seconds: number): number => Math.round(seconds * 1000);

/** Throws with what either of them does not like, and where they differ. */
export async function readByOthers(file: string): Promise<SeenCue[]> {
  const checked = readByChecker(file);
  const played = await readByPlayer(file);
  if (JSON.stringify(checked) !== JSON.stringify(played)) {
    throw new Error(`Read as ${JSON.stringify(checked)} and as ${JSON.stringify(played)}`);
  }
  return played;
}

function readByChecker(file: string): SeenCue[] {
  const { WebVTTParser } = load<Checker>("webvtt-parser");
  // Its own short list of entities is without their semicolons, and leaves those in the text.
  const parser = new WebVTTParser(load<object>("webvtt-parser/html-entities.json"));
  const { cues, errors } = parser.parse(file, "captions");
  if (errors.length > 0) throw new Error(errors.map(({ line, message }) => `${line}: ${message}`).join("; "));
  return cues.map(({ startTime, endTime, tree }) => {
    const voice = tree.children?.find(({ name }) => name === "v")?.value;
    return {
      startMs: ms(startTime),
      endMs: ms(endTime),
      voice: typeof voice === "string" ? unescaped(voice) : null,
      text: checkedText(tree),
    };
  });
}

function checkedText({ type, value, children = [] }: CheckedNode): string {
  return type === "text" ? String(value) : children.map(checkedText).join("");
}

/** It leaves a name's escapes where they are. */
function unescaped(name: string): string {
  return name.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

async function readByPlayer(file: string): Promise<SeenCue[]> {
  const { parseText, tokenizeVTTCue } = await importFrom<Player>("media-captions");
  const { cues, errors } = await parseText(file, { type: "vtt", strict: true });
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("; "));
  return cues.map((cue) => {
    const nodes = tokenizeVTTCue(cue);
    return {
      startMs: ms(cue.startTime),
      endMs: ms(cue.endTime),
      voice: nodes.find(({ type }) => type === "v")?.voice ?? null,
      text: nodes.map(playedText).join(""),
    };
  });
}

function playedText({ data, children = [] }: PlayedNode): string {
  return data ?? children.map(playedText).join("");
}
