/**
 * Requests over HTTP that arrived at other nodes, for sessions of this one: they are answered here, and the answer is passed on.
 * Who asks was admitted where it arrived, and is counted there.
 *
 *   {"answer":{status, contentType, headers}}, its body in pieces, an ordinary end
 *   {"stream":{headers}}, bytes, bytes, ... and the end, ordinary where it is whole
 */
import type { RelayedListener } from "../../cluster/relay/relay.ts";
import { INTERNAL_ERROR, NORMAL_CLOSURE } from "../../kit/close-codes.ts";
import { type Answer, failure } from "../http.ts";
import type { PassedFacts } from "../passed-facts.ts";
import type { HostedClient, TakeIn } from "./relay-host.ts";

/** Well below what a bus takes as one message. */
const PIECE_BYTES = 64 * 1024;

const REQUEST_ROUTES = ["speak", "interrupt", "vtt", "srt", "rtp"] as const;
type RequestRoute = (typeof REQUEST_ROUTES)[number];

/** The body of an answer that goes on. */
export interface AnswerStream {
  readonly isClosed: boolean;
  /** What waits for the client. */
  readonly bufferedBytes: number;
  /** Writes the head. */
  open(headers: Readonly<Record<string, string>>): void;
  write(data: Uint8Array | string): void;
  end(last: Uint8Array | string): void;
  /** The client sees that it is not whole. */
  cut(): void;
}

export interface HostedRequest extends Omit<PassedFacts, "kind" | "more"> {
  readonly route: RequestRoute;
  /** The URL's query, with what the caller's key and token set. */
  readonly query: string;
  /** A command, as JSON; for `rtp` the id of the call that is to end. */
  readonly body: string;
}

/** Answers one request; what it throws is the answer. */
type AnswerRequest = (request: HostedRequest, answer: HostedAnswer) => void;

export function takeInRequests(answerRequest: AnswerRequest): TakeIn {
  return ({ more, ...facts }, listener) => {
    const { route: named, query, body } = more;
    const route = REQUEST_ROUTES.find((known) => known === named);
    if (route === undefined || typeof query !== "string" || typeof body !== "string") return undefined;
    const answer = new HostedAnswer(listener);
    try {
      answerRequest({ ...facts, route, query, body }, answer);
    } catch (thrown) {
      answer.fail(thrown);
    }
    return answer;
  };
}

export class HostedAnswer implements AnswerStream, HostedClient {
  readonly #listener: RelayedListener;
  #isOver = false;
  /** It is over, whoever ended it. Called once. */
  onClosed: () => void = () => undefined;

  constructor(listener: RelayedListener) {
    this.#listener = listener;
  }

  get isClosed(): boolean {
    return this.#isOver;
  }
  get bufferedBytes(): number {
    return this.#isOver ? 0 : this.#listener.bufferedBytes();
  }

  /** All of it. */
  send(answer: Answer): void {
    if (this.#isOver) return;
    const { body, ...head } = answer;
    this.#listener.send([JSON.stringify({ answer: head })]);
    this.end(body);
  }

  json(status: number, body: unknown): void {
    this.send({ status, contentType: "application/json", body: JSON.stringify(body) });
  }

  fail(thrown: unknown): void {
    this.send(failure(thrown));
  }

  open(headers: Readonly<Record<string, string>>): void {
    if (!this.#isOver) this.#listener.send([JSON.stringify({ stream: { headers } })]);
  }

  write(data: Uint8Array | string): void {
    if (this.#isOver || data.length === 0) return;
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      this.#listener.send([bytes.subarray(at, at + PIECE_BYTES)]);
    }
  }

  end(last: Uint8Array | string): void {
    this.write(last);
    this.#close(NORMAL_CLOSURE);
  }

  cut(): void {
    this.#close(INTERNAL_ERROR);
  }

  // ---- HostedClient

  message(): void {
    // Who asks says nothing more.
  }
  drained(): void {
    // What waits is looked at when something is written.
  }
  closed(): void {
    this.#close(null);
  }

  /** `code` null: its client has gone. */
  #close(code: number | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (code !== null) this.#listener.end(code, "");
    this.onClosed();
  }
}
