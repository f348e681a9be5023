/**
 * A listener as a program would write it from docs/protocol.md: it counts frames from `hello`, keeps the number of the
 * last event that everybody got, loses its socket and comes back with what it has.
 */
import type { AudioDescription, Event, GapEvent, HelloEvent } from "../../../src/protocol/events.ts";
import type { createRig } from "../../helpers/session-rig.ts";

type Rig = ReturnType<typeof createRig>;
type Joined = ReturnType<Rig["join"]>;

const PRIVATE: ReadonlySet<string> = new Set([
  "hello",
  "configured",
  "utterance.queued",
  "gap",
  "pong",
  "warning",
]);

export interface Heard {
  readonly atMs: number;
  readonly bytes: Uint8Array;
}

export class ScriptedListener {
  readonly #rig: Rig;
  #query: string;
  #line: Joined;
  #read = 0;
  #nextMs = 0;
  #frameMs = 0;
  #hello: HelloEvent | null = null;
  #seq: number | null = null;
  readonly frames: Heard[] = [];
  /** Those that everybody gets. */
  readonly events: Event[] = [];
  readonly gaps: GapEvent[] = [];
  readonly warnings: string[] = [];

  constructor(rig: Rig, query: string) {
    this.#rig = rig;
    this.#query = query;
    this.#line = rig.join(query);
  }

  get line(): Joined {
    return this.#line;
  }
  get hello(): HelloEvent {
    if (this.#hello === null) throw new Error("No hello has come");
    return this.#hello;
  }
  /** Messages that the gateway sent on the socket that stands. */
  get sentCount(): number {
    return this.#line.listener.sent.length;
  }
  get endMs(): number {
    return this.#nextMs;
  }
  get audio(): Buffer {
    return Buffer.concat(this.frames.map((frame) => frame.bytes));
  }
  get seqs(): number[] {
    return this.events.map((event) => event.seq);
  }

  /** Its token, and exactly where it is. */
  get place(): string {
    return `${this.hello.resume_token}&seq=${this.#seq ?? this.hello.seq}&at_ms=${this.#nextMs}`;
  }

  /** Reads what came, the first `count` messages of this socket at most. */
  read(count = Number.POSITIVE_INFINITY): this {
    const { sent } = this.#line.listener;
    for (; this.#read < Math.min(count, sent.length); this.#read += 1) {
      const item = sent[this.#read];
      if (item?.frame !== undefined) this.#takeFrame(item.frame);
      else if (item?.event !== undefined) this.#takeEvent(item.event);
    }
    return this;
  }

  /** The socket is gone: of what was sent on it, `count` messages came. */
  cutOff(count = Number.POSITIVE_INFINITY): this {
    this.read(count);
    const { session, participant } = this.#line;
    session.leave(participant);
    return this;
  }

  /** Comes back, with other settings if emitted; `place`: its token and what it says of where it is. */
  comeBack(options: { query?: string; place?: string } = {}): this {
    const place = options.place ?? this.place;
    this.#query = options.query ?? this.#query;
    this.#read = 0;
    this.#line = this.#rig.join(`${this.#query}&resume=${place}`);
    return this;
  }

  #takeFrame(bytes: Uint8Array): void {
    this.frames.push({ atMs: this.#nextMs, bytes });
    this.#nextMs += this.#frameMs;
  }

  #takeEvent(event: Event): void {
    if (event.type === "hello") {
      this.#describe(event.audio);
      this.#hello = event;
    }
    if (event.type === "configured") this.#describe(event.audio);
    if (event.type === "gap") {
      this.#nextMs += event.ms;
      this.gaps.push(event);
    }
    if (event.type === "warning") this.warnings.push(event.code);
    if (PRIVATE.has(event.type)) return;
    // A newcomer gets what speaks now under the number of the last event that it got.
    if (event.type === "utterance.started" && event.seq === this.#hello?.seq) return;
    if (event.type === "interrupted" && event.next_ms !== null) this.#nextMs = event.next_ms;
    this.#seq = event.seq;
    this.events.push(event);
  }

  #describe(audio: AudioDescription | null): void {
    if (audio === null) return;
    this.#nextMs = audio.start_ms;
    this.#frameMs = audio.frame_ms;
  }
}
