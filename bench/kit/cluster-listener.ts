/** A listener of a session at any of several nodes: it comes back to the next one, and keeps what it has heard. */
import WebSocket from "ws";
import type { Event } from "../../src/protocol/events.ts";

const FRAME_MS = 20;
const FORMAT = `format=ulaw_8000&frame_ms=${FRAME_MS}`;
/** A node that hangs does not close its sockets. */
const SILENT_MS = 1500;
const RETRY_MS = 100;

interface Heard {
  readonly text: string;
  /** Where on its connection's timeline it is over. */
  readonly endMs: number;
}

export interface ListenerOptions {
  readonly session: string;
  /** By number of the node; changes as nodes are started again. null: it is down, as a load balancer knows. */
  readonly ports: () => readonly (number | null)[];
  readonly node: number;
  readonly role: "listener" | "both";
}

export class ClusterListener {
  readonly #options: ListenerOptions;
  #node: number;
  #socket: WebSocket | null = null;
  #hello: Extract<Event, { type: "hello" }> | null = null;
  #token: string | null = null;
  /** Of the last event that all got. */
  #seq = 0;
  #startMs = 0;
  #frames = 0;
  #words: Heard[] = [];
  readonly #heard: string[] = [];
  #isLeft = false;
  #watch: NodeJS.Timeout | null = null;
  #lastFrameMs = 0;
  /** When each of its breaks began and when the next frame came, monotonic ms. */
  readonly breaks: { readonly atMs: number; backMs: number | null }[] = [];
  isDone = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#node = options.node;
    this.#connect();
  }

  get isJoined(): boolean {
    return this.#hello !== null;
  }
  get node(): number {
    return this.#node;
  }
  /** All words whose audio has come whole. */
  get words(): readonly string[] {
    return [...this.#heard, ...this.#heardNow()];
  }

  send(message: object): void {
    this.#socket?.send(JSON.stringify(message));
  }

  close(): void {
    this.#isLeft = true;
    if (this.#watch !== null) clearInterval(this.#watch);
    this.#socket?.terminate();
  }

  #connect(): void {
    const { session, ports, role } = this.#options;
    const port = ports()[this.#node];
    if (port === null || port === undefined) {
      this.#retry();
      return;
    }
    const place = `&seq=${this.#seq}&at_ms=${this.#startMs + this.#frames * FRAME_MS}`;
    const resume = this.#token === null ? "" : `&resume=${this.#token}${place}`;
    const query = `role=${role}&${FORMAT}&events=words&wait=true${resume}`;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/live/${session}?${query}`);
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary) => {
      if (this.#socket !== socket) return;
      if (isBinary) this.#frame();
      else this.#event(JSON.parse(data.toString()) as Event);
    });
    const gone = (): void => {
      if (this.#socket !== socket) return;
      this.#broken();
    };
    socket.on("close", gone);
    socket.on("error", gone);
    if (this.#watch !== null) clearInterval(this.#watch);
    this.#lastFrameMs = performance.now();
    this.#watch = setInterval(() => {
      const isSpeaking = this.#frames > 0 && !this.isDone;
      if (isSpeaking && performance.now() - this.#lastFrameMs > SILENT_MS) this.#broken();
    }, 100);
  }

  #broken(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.terminate();
    if (this.#watch !== null) clearInterval(this.#watch);
    if (this.#isLeft) return;
    if (!this.isDone && this.breaks.at(-1)?.backMs !== null) {
      this.breaks.push({ atMs: performance.now(), backMs: null });
    }
    this.#retry();
  }

  #retry(): void {
    this.#node = (this.#node + 1) % this.#options.ports().length;
    setTimeout(() => {
      if (!this.#isLeft) this.#connect();
    }, RETRY_MS);
  }

  #frame(): void {
    this.#frames += 1;
    this.#lastFrameMs = performance.now();
    const last = this.breaks.at(-1);
    if (last?.backMs === null) last.backMs = this.#lastFrameMs;
  }

  #heardNow(): string[] {
    const endMs = this.#startMs + this.#frames * FRAME_MS;
    return this.#words.filter((word) => word.endMs <= endMs).map(({ text }) => text);
  }

  /** On the same timeline a word that was not over may be heard to its end yet. */
  #settle(isSameTimeline: boolean): void {
    const endMs = this.#startMs + this.#frames * FRAME_MS;
    this.#heard.push(...this.#heardNow());
    this.#words = isSameTimeline ? this.#words.filter((word) => word.endMs > endMs) : [];
  }

  #event(event: Event): void {
    switch (event.type) {
      case "hello":
        this.#settle(event.epoch === this.#hello?.epoch);
        if (event.resumed !== true) this.#seq = event.seq;
        this.#frames = 0;
        this.#startMs = event.audio?.start_ms ?? 0;
        this.#hello = event;
        this.#token = event.resume_token;
        return;
      case "words":
        this.#seq = event.seq;
        for (const { text, end_ms: endMs } of event.words) this.#words.push({ text, endMs });
        return;
      case "utterance.done":
        this.isDone = true;
        return;
      default:
    }
  }
}
