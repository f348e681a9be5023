/**
 * The seam at which a session is recorded, and at which it is run again (`recording/`). All that makes a session do something, and
 * all that it learns from outside, passes here; what it does between is a function of that alone.
 *
 *   entry     somebody calls the session: a client's command, a timer, a chunk of the upstream
 *   tell      the session calls somebody: a listener, the upstream; with the answer
 *   read      the session asks for a value that is not its own: how full a socket is, a random number
 *
 * Time stands still during an entry. Without a tape nothing of this is there: it is asked for once a call.
 */

/** Calls of a session from outside that are no callbacks, by name. `recording/player.ts` carries them out again. */
export type EntryName =
  | "open"
  | "join"
  | "leave"
  | "drained"
  | "command"
  | "speak"
  | "interrupt"
  | "textChanged"
  | "captions"
  | "send"
  | "acknowledge"
  | "endTexts"
  | "drain"
  | "noise"
  | "restore"
  | "close";

export interface Tape {
  /** The session's time, ms. */
  nowMs(): number;
  /** Calls the session. Inside another entry it is a part of that, unless who was told something calls back. */
  enter<T>(name: EntryName, says: readonly unknown[], run: () => T): T;
  /** What is called later from outside, once or more, with values that can be written down. `name` says what it is. */
  callback<A extends readonly unknown[]>(name: string, run: (...args: A) => void): (...args: A) => void;
  /** Calls somebody. Both `says` and the answer can be written down. Throws what `answer` throws. */
  tell<T>(name: string, says: readonly unknown[], answer: () => T): T;
  /** A value from outside; `usual` ones take no room. Throws what `answer` throws. */
  read<T>(name: string, usual: T, answer: () => T): T;
}

/** Runs `run` as an entry, where there is a tape. */
export function entering<T>(
  tape: Tape | undefined,
  entry: { readonly name: EntryName; readonly says: () => readonly unknown[] },
  run: () => T,
): T {
  return tape === undefined ? run() : tape.enter(entry.name, entry.says(), run);
}

/** Calls one of two functions when a promise settles, as an entry where there is a tape. */
export function whenSettled<T>(
  tape: Tape | undefined,
  promise: PromiseLike<T>,
  { done, failed }: { readonly done: (value: T) => void; readonly failed: (thrown: unknown) => void },
): void {
  promise.then(tape?.callback("settled", done) ?? done, tape?.callback("failed", failed) ?? failed);
}
