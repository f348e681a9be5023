/** Where two values first differ. */
import { isList, type Json } from "./json.ts";

const MAX_SHOWN = 120;

export interface Unlike {
  /** Names and places on the way to it, with dots between. */
  readonly field: string;
  readonly recorded: string;
  readonly replayed: string;
}

/** null: they are the same, the order of their fields too. JSON in strings is looked into. */
export function firstDifference(recorded: Json, replayed: Json, path: readonly string[] = []): Unlike | null {
  if (JSON.stringify(recorded) === JSON.stringify(replayed)) return null;
  const [before, now] = [partsOf(recorded), partsOf(replayed)];
  if (before !== null && now !== null) {
    for (const name of new Set([...before.keys(), ...now.keys()])) {
      const unlike = firstDifference(before.get(name) ?? null, now.get(name) ?? null, [...path, name]);
      if (unlike !== null) return unlike;
      if (before.has(name) !== now.has(name)) return shown([...path, name], before.get(name), now.get(name));
    }
  }
  return shown(path, recorded, replayed);
}

function shown(path: readonly string[], recorded: Json | undefined, replayed: Json | undefined): Unlike {
  const show = (value: Json | undefined): string =>
    (value === undefined ? "nothing" : JSON.stringify(value)).slice(0, MAX_SHOWN);
  return { field: path.join("."), recorded: show(recorded), replayed: show(replayed) };
}

function partsOf(json: Json): ReadonlyMap<string, Json> | null {
  if (typeof json === "string" && json.startsWith("{")) return partsOf(parsed(json));
  if (json === null || typeof json !== "object") return null;
  if (isList(json)) return new Map(json.map((value, index) => [String(index), value]));
  return new Map(Object.entries(json));
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}
