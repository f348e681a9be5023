/** With which codes WebSockets have closed. Clients may send any of 4,000 codes: those that nobody has heard of are one. */
import { ERRORS } from "../errors.ts";

/** Codes that a socket may close with, or is said to have closed with (RFC 6455 section 7.4.1 and its registry). */
const STANDARD = [1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015];

const KNOWN: ReadonlySet<number> = new Set([
  ...STANDARD,
  ...Object.values(ERRORS).map(({ closeCode }) => closeCode),
]);

export class CloseCounts {
  readonly #byCode = new Map<string, number>();

  count(code: number): void {
    const label = KNOWN.has(code) ? String(code) : "other";
    this.#byCode.set(label, (this.#byCode.get(label) ?? 0) + 1);
  }

  get byCode(): ReadonlyMap<string, number> {
    return this.#byCode;
  }
}
