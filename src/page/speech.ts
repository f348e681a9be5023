/** Sends what the form asks for, whole or token by token, and stops it again. */
import type { Connection } from "../client/connect.ts";
import type { AudioEngine } from "./audio-engine.ts";
import type { Request } from "./composer.ts";
import { feedTokens, type TokenFeed, tokensOf } from "./tokens.ts";
import type { Transcript } from "./transcript.ts";
import type { Utterance } from "./utterance.ts";

export interface SpeechParts {
  readonly transcript: Transcript;
  readonly engine: AudioEngine;
  readonly onChange: (utterance: Utterance) => void;
}

export class Speech {
  readonly #parts: SpeechParts;
  #feed: TokenFeed | null = null;
  #isStopping = false;

  constructor(parts: SpeechParts) {
    this.#parts = parts;
  }

  /** Stop was pressed and the gateway has not answered: frames that still come are of what was stopped. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  speak(connection: Connection, request: Request): void {
    const id = connection.newUtteranceId();
    const { transcript, engine, onChange } = this.#parts;
    const utterance = transcript.addOwn(id, ownParts(request));
    onChange(utterance);
    engine.latency.sent(id, performance.now());
    if (request.kind === "text" && request.areTokens) {
      this.#feedTokens(connection, utterance, request);
      return;
    }
    const accepted =
      request.kind === "dialogue"
        ? connection.dialogue({ inputs: request.inputs, utterance_id: id, ...request.options })
        : connection.speak({ text: request.text, utterance_id: id, ...request.options });
    // The error itself is shown by the `error` event; here it only ends the wait.
    accepted.catch(() => this.#refused(utterance));
  }

  /** Silent at once; the receipt follows when the gateway answers. */
  stop(connection: Connection): void {
    this.#feed?.cancel();
    this.#feed = null;
    // Rounded down: more than was sent can't have been played.
    connection.played({ at_ms: Math.floor(this.#parts.engine.positionMs) });
    this.#parts.engine.silence();
    this.#isStopping = true;
    connection.interrupt().catch(() => this.stopped());
  }

  /** The gateway has stopped: what comes from now on is new. */
  stopped(): void {
    this.#isStopping = false;
  }

  /** The connection is gone. */
  disconnected(): void {
    this.#feed?.cancel();
    this.#feed = null;
    this.#isStopping = false;
  }

  #feedTokens(
    connection: Connection,
    utterance: Utterance,
    request: Extract<Request, { kind: "text" }>,
  ): void {
    const { id } = utterance;
    const feed = feedTokens(tokensOf(request.text), {
      onToken: (token) => {
        // The link tells of a closed socket a little later than the socket knows.
        if (!connection.isOpen) return;
        const isFirst = utterance.text === "";
        connection.text(token, { utterance_id: id, ...(isFirst ? request.options : {}) });
        utterance.append(token);
        this.#parts.onChange(utterance);
      },
      onEnd: () => {
        if (connection.isOpen) connection.end(id);
        if (this.#feed === feed) this.#feed = null;
      },
    });
    this.#feed = feed;
  }

  #refused(utterance: Utterance): void {
    if (utterance.isOver) return;
    utterance.state = "failed";
    this.#parts.onChange(utterance);
  }
}

function ownParts(request: Request): { text: string; voiceId: string | null }[] {
  if (request.kind === "dialogue") {
    return request.inputs.map(({ text, voice_id }) => ({ text, voiceId: voice_id }));
  }
  return [{ text: request.areTokens ? "" : request.text, voiceId: request.options.voice_id ?? null }];
}
