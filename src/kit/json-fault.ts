/** Where a file is no JSON. Never what stands there: the runtime quotes the text around it, and that may be a secret. */

/** `thrown`: what JSON.parse said of the text. */
export function jsonFault(text: string, thrown: unknown): string {
  const said = thrown instanceof Error ? /at position (\d+)/.exec(thrown.message) : null;
  // The runtime does not say where some faults are.
  if (said === null) return "it is no JSON";
  const before = text.slice(0, Number(said[1])).split("\n");
  return `it is no JSON from line ${before.length}, column ${(before.at(-1) ?? "").length + 1} on`;
}
