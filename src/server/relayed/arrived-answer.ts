/** A request over HTTP here whose session is at another node: that answers it, and its answer is handed on. */
import type { ArrivedSocket, OwnerConnection } from "../../cluster/relay/relay.ts";
import { jsonOf, type RelayItem } from "../../cluster/relay/relay-format.ts";
import type { SendResult } from "../../delivery/listener.ts";
import type { GatewayError } from "../../errors.ts";
import { NORMAL_CLOSURE } from "../../kit/close-codes.ts";
import type { Answer } from "../http.ts";
import type { LiveDeps } from "../live-request.ts";
import { passFacts } from "../passed-facts.ts";
import { endedBefore } from "./far-listener.ts";
import type { AnswerStream, HostedRequest } from "./hosted-answer.ts";

export interface ArrivedAnswerOptions {
  /** All of it. */
  readonly onAnswer: (answer: Answer) => void;
  readonly onRefused: (error: GatewayError) => void;
  /** What a body that goes on is written to; null: none is wanted. */
  readonly stream: AnswerStream | null;
}

export class ArrivedAnswer implements ArrivedSocket {
  readonly #options: ArrivedAnswerOptions;
  #connection: OwnerConnection | null = null;
  #hasBegun = false;
  /** Whose body comes in pieces. */
  #answer: AnswerHead | null = null;
  readonly #pieces: Buffer[] = [];
  #isOver = false;

  private constructor(options: ArrivedAnswerOptions) {
    this.#options = options;
  }

  /** Throws bus_lost. */
  static ask(
    { cluster, owner }: Pick<LiveDeps, "cluster"> & { readonly owner: string },
    { route, query, body, ...client }: HostedRequest,
    options: ArrivedAnswerOptions,
  ): ArrivedAnswer {
    if (cluster === null) throw new TypeError("There is no other node");
    const answer = new ArrivedAnswer(options);
    answer.#connection = cluster.connect(owner, passFacts("request", client, { route, query, body }), answer);
    return answer;
  }

  send(items: readonly RelayItem[]): SendResult {
    for (const { isBinary, bytes } of items) {
      if (this.#isOver) break;
      if (!isBinary) this.#begin(bytes);
      else if (this.#answer === null) this.#options.stream?.write(bytes);
      // Its bytes are lent.
      else this.#pieces.push(Buffer.from(bytes));
    }
    return this.bufferedBytes() === 0 ? "sent" : "buffered";
  }

  bufferedBytes(): number {
    return this.#options.stream?.bufferedBytes ?? 0;
  }

  end(closeCode: number, reason: string): void {
    if (this.#isOver) return;
    this.#finish(closeCode);
    const { stream, onAnswer, onRefused } = this.#options;
    const answer = this.#answer;
    if (!this.#hasBegun || (answer !== null && closeCode !== NORMAL_CLOSURE)) onRefused(endedBefore(reason));
    else if (answer !== null) onAnswer({ ...answer, body: Buffer.concat(this.#pieces) });
    else if (closeCode === NORMAL_CLOSURE) stream?.end("");
    else stream?.cut();
  }

  /** The client has taken what waited. */
  drained(): void {
    this.#connection?.drained();
  }

  /** The client has gone. Idempotent. */
  leave(): void {
    this.#finish(NORMAL_CLOSURE);
  }

  #begin(bytes: Uint8Array): void {
    const head = readHead(bytes);
    if (head === undefined || this.#hasBegun) return;
    this.#hasBegun = true;
    if ("stream" in head) this.#options.stream?.open(head.stream.headers);
    else this.#answer = head.answer;
  }

  #finish(code: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#connection?.closed(code);
  }
}

type AnswerHead = Omit<Answer, "body">;
type Head =
  | { readonly answer: AnswerHead }
  | { readonly stream: { readonly headers: Readonly<Record<string, string>> } };

/** As HostedAnswer has written it; undefined: it is none. */
function readHead(bytes: Uint8Array): Head | undefined {
  const value = jsonOf(bytes);
  if (typeof value !== "object" || value === null) return undefined;
  return "answer" in value || "stream" in value ? (value as Head) : undefined;
}
