/** What a whole tag is: its name and whether it opens, closes, or stands alone. */

export interface Tag {
  /** Lower case: vendors take both. */
  readonly name: string;
  readonly role: "opening" | "closing" | "alone";
}

const TAG = /^<(\/?)([a-z][a-z0-9:._-]*)/i;

/** `text` is the whole tag, as TagGate finds it; null for a bracket tag (`[laughs]`), which has no name. */
export function readTag(text: string): Tag | null {
  const match = TAG.exec(text);
  if (match === null) return null;
  const name = (match[2] ?? "").toLowerCase();
  if (match[1] === "/") return { name, role: "closing" };
  return { name, role: text.endsWith("/>") ? "alone" : "opening" };
}

/** SSML elements that mean nothing when they are cut: the service would say the tags, or the wrong sound. */
export const ATOMIC_ELEMENTS: ReadonlySet<string> = new Set(["phoneme", "say-as", "sub", "w", "emphasis"]);
