/**
 * A TCP connection to a Wyoming server. It is asked first what it can do: whether it takes a text in pieces decides how it
 * is asked, and where its answer ends.
 */
import { connect, type Socket } from "node:net";
import { type WyomingFrame, WyomingReader, wyomingFrame } from "../../../protocol/wyoming.ts";
import {
  type LineEvents,
  type LineRequest,
  lineError,
  type OpenLine,
  type SocketLine,
} from "../../transport/socket-line.ts";
import { broken, parseObject, textOf } from "../json-values.ts";
import { voicesOf } from "./wyoming-info.ts";

export const WYOMING_PORT = 10_200;
/** A list of all voices that there are is some hundred kilobytes, and may stand in the line. */
export const WYOMING_LIMITS = { header: 1024 * 1024, data: 4 * 1024 * 1024, payload: 1024 * 1024 };
/** The header of the answer that says which frame is its last one. */
export const END_HEADER = "wyoming-end";
/** First TCP keep-alive probe. */
const TCP_PROBE_MS = 15_000;

/** A request's only message: what is asked, as JSON. */
export interface WyomingAsked {
  readonly text: string;
  readonly voice: { readonly name: string; readonly speaker?: string | undefined };
}

export const WYOMING_LINE: SocketLine = { open: (request, events) => new WyomingConnection(request, events) };

class WyomingConnection implements OpenLine {
  readonly #events: LineEvents;
  readonly #messages: readonly string[];
  readonly #socket: Socket;
  readonly #reader = new WyomingReader({
    limits: WYOMING_LIMITS,
    broken,
    onFrame: (frame) => this.#meet(frame),
  });
  /** The server has said what it can do, and what follows is the answer. */
  #isIntroduced = false;
  #isOver = false;

  constructor({ url, messages, connectTimeoutMs }: LineRequest, events: LineEvents) {
    this.#events = events;
    this.#messages = messages;
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const port = url.port === "" ? WYOMING_PORT : Number(url.port);
    const socket = connect({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_PROBE_MS,
    });
    this.#socket = socket;
    socket.setTimeout(connectTimeoutMs, () => {
      const message = `Nobody has taken the connection for ${connectTimeoutMs} ms`;
      socket.destroy(lineError("ETIMEDOUT", message));
    });
    socket.on("connect", () => {
      socket.setTimeout(0);
      if (!this.#isOver && events.opened()) socket.write(wyomingFrame("describe"));
    });
    socket.on("data", (bytes) => this.#take(bytes));
    socket.on("error", (error) => this.#close(() => events.failed(error)));
    socket.on("close", () => this.#close(() => this.#closed()));
  }

  hold(): void {
    this.#socket.pause();
  }
  release(): void {
    this.#socket.resume();
  }
  end(): void {
    this.destroy();
  }
  destroy(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    if (this.#isOver) return;
    if (this.#isIntroduced) {
      this.#events.message(bytes);
      return;
    }
    try {
      this.#reader.push(bytes);
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : broken("it can't be told how");
      this.#close(() => this.#events.failed(error));
    }
  }

  #meet({ type, data }: WyomingFrame): void {
    if (type !== "info" || this.#isIntroduced) return;
    this.#isIntroduced = true;
    const [message] = this.#messages;
    if (message === undefined) {
      this.#events.answered(200, {});
      this.#events.message(Buffer.from(JSON.stringify(data)));
      this.#close(() => this.#events.ended());
      return;
    }
    const asked = parseObject(message) as unknown as WyomingAsked;
    const voices = voicesOf(data, asked.voice.name);
    if (voices === null) throw broken("the server lists no voices at all (tts of its info)");
    // It would take another one, and say nothing of it.
    if (voices.names.length > 0 && !voices.names.includes(asked.voice.name)) this.#refuse("unknown_voice");
    else this.#ask(asked, voices.isStreaming);
  }

  /** As the server itself would: it has no statuses. */
  #refuse(code: string): void {
    this.#events.answered(200, {});
    this.#events.message(wyomingFrame("error", { code }));
    this.#close(() => this.#events.ended());
  }

  #ask({ text, voice }: WyomingAsked, isStreaming: boolean): void {
    this.#events.answered(200, { [END_HEADER]: isStreaming ? "synthesize-stopped" : "audio-stop" });
    if (this.#isOver) return;
    const whole = wyomingFrame("synthesize", { text, voice });
    const frames = isStreaming
      ? [
          wyomingFrame("synthesize-start", { voice }),
          wyomingFrame("synthesize-chunk", { text: textOf(text) }),
          // As the protocol wants it, for those that take no pieces; others do nothing about it.
          whole,
          wyomingFrame("synthesize-stop"),
        ]
      : [whole];
    this.#socket.write(Buffer.concat(frames));
  }

  #closed(): void {
    if (this.#isIntroduced) this.#events.ended();
    else this.#events.failed(lineError("ECONNRESET", "The server closed before it said what it can do"));
  }

  /** Once. */
  #close(tell: () => void): void {
    if (this.#isOver) return;
    this.destroy();
    tell();
  }
}
