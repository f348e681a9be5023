/** One session of the tone gateway: speaks the native protocol to everybody who joined, in real time. */
import OpusScript from "opusscript";
import type { WebSocket } from "ws";
import type { Command } from "../../src/protocol/commands.ts";
import type { Event } from "../../src/protocol/events.ts";
import { append, FRAME_MS, makeUnit, shifted, type Unit } from "./tone.ts";
import { greeting, segmentsOf, WATERFALL } from "./tone-words.ts";

const LEAD_MS = 300;

export interface ToneSessionOptions {
  /** The error that a command is refused with; null = it is carried out. */
  readonly refuse?: (command: Command) => { code: string; message: string } | null;
}

/** What is spoken: `next` is the frame that is sent next, `fromFrame` where this stretch of it began. */
interface Speaking {
  readonly unit: Unit;
  next: number;
  readonly fromFrame: number;
  readonly startMs: number;
  readonly beganAt: number;
}

/** An utterance whose text still comes: what of it has no sound yet. */
interface OpenText {
  readonly unit: Unit;
  readonly voice: string;
  pending: string;
  isEnded: boolean;
}

export class ToneSession {
  readonly id: string;
  /** Every command that came, for tests to look at. */
  readonly commands: Command[] = [];
  readonly #epoch = Math.random().toString(36).slice(2);
  readonly #options: ToneSessionOptions;
  readonly #encoder = new OpusScript(48_000, 1, OpusScript.Application.AUDIO);
  readonly #participants = new Set<WebSocket>();
  readonly #open = new Map<string, OpenText>();
  /** All that was sent, for those who come back. */
  readonly #log: { readonly seq: number; readonly atMs: number; readonly data: string | Uint8Array }[] = [];
  #queue: Unit[] = [];
  #current: Speaking | null = null;
  #stopped: { readonly unit: Unit; readonly atFrame: number } | null = null;
  #edgeMs = 0;
  #seq = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(id: string, options: ToneSessionOptions) {
    this.id = id;
    this.#options = options;
    this.#timer = setInterval(() => this.#pump(), 10);
  }

  join(socket: WebSocket, query: URLSearchParams): void {
    this.#participants.add(socket);
    socket.on("close", () => {
      this.#participants.delete(socket);
      this.#emitPresence();
    });
    socket.on("message", (data) => this.#take(socket, JSON.parse(String(data)) as Command));
    const isResumed = query.get("resume") === this.#epoch;
    const seq = query.get("seq");
    const startMs = isResumed ? Number(query.get("at_ms")) : this.#edgeMs;
    const isListener = query.get("role") === "listener";
    this.#send(socket, {
      ...greeting({ session: this.id, epoch: this.#epoch, isListener, startMs, leadMs: LEAD_MS }),
      ...(query.has("resume") ? { resumed: isResumed } : {}),
    });
    if (query.has("resume") && !isResumed) {
      this.#send(socket, {
        type: "warning",
        code: "resume_refused",
        message: "RAW: the epoch is another one",
      });
    }
    for (const entry of isResumed ? this.#log : []) {
      const isMissed = typeof entry.data === "string" ? entry.seq > Number(seq) : entry.atMs >= startMs;
      if (isMissed) socket.send(entry.data);
    }
    this.#emitPresence();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#encoder.delete();
  }

  #take(socket: WebSocket, command: Command): void {
    this.commands.push(command);
    const refusal = this.#options.refuse?.(command) ?? null;
    const id = ("utterance_id" in command ? command.utterance_id : undefined) ?? "u";
    if (refusal !== null)
      this.#send(socket, { type: "error", ...refusal, retryable: false, utterance_id: id });
    else if (command.type === "speak") {
      this.#enqueue(
        socket,
        this.#unit(id, [{ text: command.text, voice_id: command.voice_id ?? "voice-a" }]),
      );
    } else if (command.type === "dialogue") this.#enqueue(socket, this.#unit(id, command.inputs));
    else if (command.type === "text") this.#addText(socket, id, command);
    else if (command.type === "end") this.#endText(id);
    else if (command.type === "interrupt") this.#interrupt(socket);
    else if (command.type === "resume") this.#resume(socket);
    else if (command.type === "ping") this.#send(socket, { type: "pong", id: command.id });
    else if (command.type === "close") socket.close(1000, "session_closed");
  }

  #unit(id: string, inputs: readonly { text: string; voice_id: string }[]): Unit {
    return makeUnit(this.#encoder, { id, inputs });
  }

  #enqueue(socket: WebSocket, unit: Unit): void {
    const ahead = this.#queue.length + (this.#current === null ? 0 : 1);
    this.#queue.push(unit);
    this.#send(socket, { type: "utterance.queued", utterance_id: unit.id, ahead });
  }

  #addText(socket: WebSocket, id: string, command: Extract<Command, { type: "text" }>): void {
    const open = this.#open.get(id) ?? {
      unit: this.#unit(id, []),
      voice: command.voice_id ?? "voice-a",
      pending: "",
      isEnded: false,
    };
    if (!this.#open.has(id)) this.#enqueue(socket, open.unit);
    this.#open.set(id, open);
    open.pending += command.text;
    const sentence = /^.*[.!?]\s+/s.exec(open.pending)?.[0] ?? "";
    this.#speakPart(open, sentence);
  }

  #endText(id: string): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#speakPart(open, open.pending);
    open.isEnded = true;
  }

  #speakPart(open: OpenText, text: string): void {
    if (text === "") return;
    open.pending = open.pending.slice(text.length);
    append(open.unit, this.#unit(open.unit.id, [{ text, voice_id: open.voice }]));
  }

  #pump(): void {
    const now = performance.now();
    if (this.#current === null) {
      const unit = this.#queue[0];
      if (unit === undefined || unit.frames.length === 0) return;
      this.#queue.shift();
      this.#current = { unit, next: 0, fromFrame: 0, startMs: this.#edgeMs, beganAt: now };
      const started = { voice_ids: ["voice-a"], source_format: "tone", start_ms: this.#edgeMs };
      this.#toAll({ type: "utterance.started", utterance_id: unit.id, ...started });
    }
    const { unit, fromFrame, startMs, beganAt } = this.#current;
    const playedMs = now - beganAt;
    while (
      this.#current.next < unit.frames.length &&
      (this.#current.next - fromFrame) * FRAME_MS <= playedMs + LEAD_MS
    ) {
      const frame = unit.frames[this.#current.next];
      this.#current.next += 1;
      const endMs = this.#current.next * FRAME_MS;
      for (const { atMs, event } of unit.events)
        if (atMs >= endMs - FRAME_MS && atMs < endMs)
          this.#toAll(shifted(event, startMs - fromFrame * FRAME_MS));
      const atMs = this.#edgeMs;
      this.#edgeMs = startMs + endMs - fromFrame * FRAME_MS;
      if (frame === undefined) continue;
      this.#log.push({ seq: this.#seq, atMs, data: frame });
      for (const participant of this.#participants) participant.send(frame);
    }
    const isComplete = this.#open.get(unit.id)?.isEnded ?? true;
    if (isComplete && this.#current.next >= unit.frames.length && this.#edgeMs - startMs <= playedMs)
      this.#finish("done");
  }

  #finish(outcome: "done" | "interrupted"): void {
    const current = this.#current;
    if (current === null) return;
    this.#current = null;
    this.#toAll({
      type: "utterance.done",
      utterance_id: current.unit.id,
      outcome,
      start_ms: current.startMs,
      end_ms: this.#edgeMs,
      pad_ms: 0,
      characters_billed: null,
      characters_spoken: current.unit.text.length,
      timing: "exact",
      latency: WATERFALL,
      segments: this.#open.has(current.unit.id) ? segmentsOf(current.unit.text) : [],
    });
  }

  #interrupt(socket: WebSocket): void {
    const current = this.#current;
    if (current === null) {
      this.#refuse(socket, "nothing_to_interrupt");
      return;
    }
    this.#queue = [];
    const { text, words, id } = current.unit;
    // As the player said; without its word, as much as could have been played since the beginning.
    const acked = this.commands.findLast((command) => command.type === "played")?.at_ms;
    const playedMs = acked === undefined ? performance.now() - current.beganAt : acked - current.startMs;
    const ms = Math.max(0, playedMs) + current.fromFrame * FRAME_MS;
    const end = words.filter((word) => word.end_ms <= ms).at(-1)?.end ?? 0;
    const next = words.find((word) => word.start >= end);
    this.#stopped = { unit: current.unit, atFrame: Math.floor((next?.start_ms ?? 0) / FRAME_MS) };
    this.#toAll({
      type: "interrupted",
      utterance_id: id,
      heard: {
        text: text.slice(0, end),
        end,
        ms,
        source: acked === undefined ? "estimate" : "ack",
        bound_ms: 40,
      },
      unheard_text: text.slice(end),
      resumable: true,
      next_ms: this.#edgeMs,
    });
    this.#finish("interrupted");
  }

  #resume(socket: WebSocket): void {
    const stopped = this.#stopped;
    if (stopped === null) {
      this.#refuse(socket, "nothing_to_resume");
      return;
    }
    this.#stopped = null;
    const { unit, atFrame } = stopped;
    const startMs = this.#edgeMs;
    this.#current = { unit, next: atFrame, fromFrame: atFrame, startMs, beganAt: performance.now() };
    const start = unit.words.find((word) => word.start_ms >= atFrame * FRAME_MS)?.start ?? 0;
    const place = { start, start_ms: startMs, kept_end: unit.text.length };
    this.#toAll({ type: "utterance.resumed", utterance_id: unit.id, ...place });
  }

  #refuse(socket: WebSocket, code: string): void {
    this.#send(socket, { type: "error", code, message: "Nothing to do", retryable: false });
  }

  #emitPresence(): void {
    this.#toAll({ type: "presence", listeners: this.#participants.size, speakers: 1 });
  }

  #toAll(event: Record<string, unknown>): void {
    this.#seq += 1;
    const data = JSON.stringify({ seq: this.#seq, at_ms: this.#edgeMs, ...event });
    this.#log.push({ seq: this.#seq, atMs: this.#edgeMs, data });
    for (const participant of this.#participants) participant.send(data);
  }

  #send(socket: WebSocket, event: Record<string, unknown> | Omit<Event, "seq" | "at_ms">): void {
    socket.send(JSON.stringify({ seq: this.#seq, at_ms: this.#edgeMs, ...event }));
  }
}
