/** Where live captions go: one interface for every service, and what can go wrong with it. */
import type { CueEvent } from "../../protocol/events.ts";
import type { CueMode } from "../../protocol/vocabulary.ts";

/** A cue whose time has come. */
export interface ShownCue {
  readonly cue: CueEvent;
  /** When it was to be seen, ms since 1970 (UTC). */
  readonly shownMs: number;
}

export interface CaptionTarget {
  /** For messages; nothing secret. */
  readonly name: string;
  /** One try. Rejects with TargetError. */
  send(shown: ShownCue, signal: AbortSignal): Promise<void>;
  /** Idempotent. */
  close(): void;
}

/** A caption did not arrive. The message is for people and has nothing of addresses, passwords or texts. */
export class TargetError extends Error {
  readonly isRetryable: boolean;

  constructor(message: string, isRetryable: boolean) {
    super(message);
    this.name = "TargetError";
    this.isRetryable = isRetryable;
  }
}

/**
 * What is shown of a cue, its speaker first. `mode`: where lines roll up on the service's side, only the new one is sent.
 */
export function shownText({ cue }: ShownCue, mode: CueMode, separator: string): string {
  const texts = cue.lines.map((line) => line.text);
  const shown = mode === "roll-up" ? texts.slice(-1) : texts;
  return `${cue.speaker === undefined ? "" : `${cue.speaker}: `}${shown.join(separator)}`;
}

/** Longest answer that is looked at. */
const MAX_ANSWER_CHARS = 1000;

interface TextRequest {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** What is posted as text; without it the address is only asked. */
  readonly body?: string;
}

/** One request. Rejects with TargetError: worth another try after a timeout, 408, 429 and 5xx. Returns the answer. */
export async function answerOf(address: URL, { signal, timeoutMs, body }: TextRequest): Promise<string> {
  let status: number;
  let text: string;
  try {
    const either = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(address, {
      ...(body === undefined
        ? {}
        : { method: "POST", body, headers: { "content-type": "text/plain; charset=utf-8" } }),
      redirect: "error",
      signal: either,
    });
    status = response.status;
    text = (await response.text()).slice(0, MAX_ANSWER_CHARS);
  } catch (thrown) {
    // The cause names the address, which has the signature in it.
    const isTimeout = thrown instanceof Error && thrown.name === "TimeoutError";
    throw new TargetError(isTimeout ? `no answer within ${timeoutMs} ms` : "can't be reached", true);
  }
  if (status >= 200 && status < 300) return text;
  throw new TargetError(`answered ${status}`, status === 408 || status === 429 || status >= 500);
}
