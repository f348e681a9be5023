/** Names of what a client sent and nothing is done of: few and short, since they are the client's own. */

/** The header of an answer that has these names, percent-encoded, with commas between. */
export const IGNORED_HEADER = "x-ignored-fields";
/** As many as are named. */
export const MAX_IGNORED = 16;
const MAX_NAME_CHARS = 64;

/** Not cut inside a character, and without a lone surrogate, which has no encoding. */
export function shownName(name: string): string {
  const shown = [...name].slice(0, MAX_NAME_CHARS).join("");
  return shown.replace(/\p{Cs}/gu, "\u{fffd}");
}

/** The value of IGNORED_HEADER. */
export function ignoredHeader(names: readonly string[]): string {
  return names
    .slice(0, MAX_IGNORED)
    .map((name) => encodeURIComponent(shownName(name)))
    .join(", ");
}
