/** A connection that comes back: what it says it has, and what it gets. */
import { GatewayError } from "../../errors.ts";

/** `resume={epoch}:{seq}`, `{epoch}:{seq}:{at_ms}` or `{epoch}:{seq}:{at_ms}:{listener_id}`; `at_ms` may be empty. */
export interface ResumeToken {
  readonly epoch: string;
  /** Number of the last event that it got. */
  readonly seq: number;
  /** End of the audio that it has, ms on the timeline; without it, that of the last event's frame is taken. */
  readonly atMs: number | null;
  /** Who it was, as its `hello` named it: a speaker goes on with its own texts. */
  readonly listenerId: string | null;
}

/** Clients know times in whole microseconds, and add to them. */
const ROUNDING_MS = 0.001;

const PLACE = String.raw`\d{1,15}(?:\.\d{1,20})?`;
const TOKEN = new RegExp(`^([A-Za-z0-9]{1,64}):(\\d{1,15})(?::(${PLACE})?:(l\\d{1,15})|:(${PLACE}))?$`);

/** Throws invalid_field. */
export function parseResume(value: string): ResumeToken {
  const match = TOKEN.exec(value);
  if (match === null) {
    throw new GatewayError(
      "invalid_field",
      `Query resume is ${JSON.stringify(value.slice(0, 40))}, expected {epoch}:{seq}, {epoch}:{seq}:{at_ms} or {epoch}:{seq}:{at_ms}:{listener_id} as hello and the events gave them`,
      { field: "resume" },
    );
  }
  const [, epoch = "", seq = "0", atMsOfOne, listenerId = null, atMs = atMsOfOne] = match;
  return { epoch, seq: Number(seq), atMs: atMs === undefined ? null : Number(atMs), listenerId };
}

export interface ResumeFacts {
  readonly epoch: string;
  /** Number of the session's latest event. */
  readonly seq: number;
  /** End of what any listener was sent, ms on the timeline. */
  readonly sentMs: number;
}

/** Why a token can't be honoured, for people; null where it can. */
export function resumeRefusal(token: ResumeToken, facts: ResumeFacts): string | null {
  if (token.epoch !== facts.epoch) {
    return "the epoch is another one: the session was closed and opened again, or it is another session's";
  }
  if (token.seq > facts.seq) return `event ${token.seq} has not been sent yet: the latest is ${facts.seq}`;
  if (token.atMs !== null && token.atMs > facts.sentMs + ROUNDING_MS) {
    return `audio up to ${token.atMs} ms was not sent yet: it ends at ${facts.sentMs} ms`;
  }
  return null;
}
