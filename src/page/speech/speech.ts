/** Sends what the form asks for, whole or token by token, and stops it again. */
import type { Connection, TextOptions } from "../../client/index.ts";
import type { AudioEngine } from "../sound/audio-engine.ts";
import type { Request } from "../view/composer.ts";
import type { TimedToken } from "./streams.ts";
import { evenly, feedTokens, type TokenFeed, tokensOf } from "./tokens.ts";
import type { Transcript } from "./transcript.ts";
import type { Utterance } from "./utterance.ts";

export interface SpeechParts {
  readonly transcript: Transcript;
  readonly engine: AudioEngine;
  readonly onChange: (utterance: Utterance) => void;
}

export class Speech {
  readonly #parts: SpeechParts;
  readonly #feeds = new Set<TokenFeed>();
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
    if (request.kind === "stream") {
      this.#feedTokens(connection, utterance, { tokens: request.tokens, options: request.options });
      return;
    }
    if (request.kind === "text" && request.areTokens) {
      const tokens = evenly(tokensOf(request.text));
      this.#feedTokens(connection, utterance, { tokens, options: request.options });
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
    this.#cancelFeeds();
    // Rounded down: more than was sent can't have been played.
    connection.played({ at_ms: Math.floor(this.#parts.engine.positionMs) });
    this.#parts.engine.silence();
    this.#isStopping = true;
    connection.interrupt().catch(() => this.stopped());
  }

  /** Goes on with what was stopped; resolves to whether it does. The error itself is shown by the `error` event. */
  resume(connection: Connection, utteranceId: string): Promise<boolean> {
    return connection.resume({ utterance_id: utteranceId }).then(
      () => true,
      () => false,
    );
  }

  /** The gateway has stopped: what comes from now on is new. */
  stopped(): void {
    this.#isStopping = false;
  }

  /** The connection is gone. */
  disconnected(): void {
    this.#cancelFeeds();
    this.#isStopping = false;
  }

  #feedTokens(
    connection: Connection,
    utterance: Utterance,
    what: { readonly tokens: readonly TimedToken[]; readonly options: TextOptions },
  ): void {
    const { id } = utterance;
    const feed = feedTokens(what.tokens, {
      onToken: (token) => {
        // The link learns of a closed socket a little later than the socket.
        if (!connection.isOpen) return Promise.reject(new Error("Token: the connection is closed"));
        const isFirst = utterance.text === "";
        const mayFollow = connection.text(token, { utterance_id: id, ...(isFirst ? what.options : {}) });
        utterance.append(token);
        this.#parts.onChange(utterance);
        return mayFollow ? Promise.resolve() : connection.ready(id);
      },
      onEnd: () => {
        if (connection.isOpen) connection.end(id);
        this.#feeds.delete(feed);
      },
    });
    this.#feeds.add(feed);
  }

  #cancelFeeds(): void {
    for (const feed of this.#feeds) feed.cancel();
    this.#feeds.clear();
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
  // Tokens are added as each one is sent.
  const text = request.kind === "text" && !request.areTokens ? request.text : "";
  return [{ text, voiceId: request.options.voice_id ?? null }];
}
