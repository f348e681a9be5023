/** Sounds to mouth shapes in time: repeats are one, none is shorter than eyes can follow, and together they are the word. */
import type { Viseme, VisemeSet } from "../../protocol/vocabulary.ts";
import type { Phone } from "./phones.ts";
import { visemeOf, visibilityOf } from "./viseme-sets.ts";

/** No shape is shorter than this, unless its word is. */
export const MIN_VISEME_MS = 40;

export interface TimedPhone {
  readonly phone: Phone;
  readonly startMs: number;
}

export interface TimedViseme {
  readonly viseme: Viseme;
  readonly startMs: number;
  readonly endMs: number;
}

interface Shape {
  readonly viseme: Viseme;
  startMs: number;
  visibility: number;
}

/**
 * The shapes of a word, without a gap from its start to its end; none without phones. `phones`: in order, each lasts until
 * the next one begins. Times before or behind the word are brought inside.
 */
export function layOut(
  phones: readonly TimedPhone[],
  word: { readonly startMs: number; readonly endMs: number },
  set: VisemeSet,
): TimedViseme[] {
  const { startMs, endMs } = word;
  if (endMs <= startMs) return [];
  let shapes = merged(
    phones.map(({ phone, startMs: at }) => ({
      viseme: visemeOf(phone, set),
      startMs: Math.min(Math.max(at, startMs), endMs),
      visibility: visibilityOf(phone),
    })),
  );
  const room = Math.max(1, Math.floor((endMs - startMs) / MIN_VISEME_MS));
  while (shapes.length > room) shapes = merged(withoutLeastSeen(shapes, endMs));
  spread(shapes, word);
  return shapes.map((shape, index) => ({
    viseme: shape.viseme,
    startMs: shape.startMs,
    endMs: shapes[index + 1]?.startMs ?? endMs,
  }));
}

function merged(shapes: readonly Shape[]): Shape[] {
  const out: Shape[] = [];
  for (const shape of shapes) {
    const last = out.at(-1);
    if (last?.viseme === shape.viseme) last.visibility = Math.max(last.visibility, shape.visibility);
    else out.push(shape);
  }
  return out;
}

/** The shape before takes its time; of several the shortest goes. */
function withoutLeastSeen(shapes: readonly Shape[], endMs: number): Shape[] {
  let least = 0;
  const lengthOf = (index: number): number =>
    (shapes[index + 1]?.startMs ?? endMs) - (shapes[index]?.startMs ?? endMs);
  for (let index = 1; index < shapes.length; index += 1) {
    const by = (shapes[index]?.visibility ?? 0) - (shapes[least]?.visibility ?? 0);
    if (by < 0 || (by === 0 && lengthOf(index) < lengthOf(least))) least = index;
  }
  return shapes.filter((_, index) => index !== least);
}

/** Moves starts as little as needed: the first to the word's, and each far enough from the next. */
function spread(shapes: readonly Shape[], word: { readonly startMs: number; readonly endMs: number }): void {
  let notBefore = word.startMs;
  for (const [index, shape] of shapes.entries()) {
    shape.startMs = index === 0 ? word.startMs : Math.max(shape.startMs, notBefore);
    notBefore = shape.startMs + MIN_VISEME_MS;
  }
  let notAfter = word.endMs - MIN_VISEME_MS;
  for (const shape of [...shapes].reverse()) {
    shape.startMs = Math.max(word.startMs, Math.min(shape.startMs, notAfter));
    notAfter = shape.startMs - MIN_VISEME_MS;
  }
}
