/** One session of the tone gateway: speaks the native protocol to everybody who joined, in real time. */
import OpusScript from "opusscript";
import type { WebSocket } from "ws";
import type { Command, Event, HelloEvent } from "../../src/protocol/vocabulary.ts";
import { FRAME_MS, FRAME_SAMPLES, makeUnit, shifted, type Unit } from "./tone.ts";

const LEAD_MS = 300;

export interface ToneSessionOptions {
  /** The error that a command is refused with; null = it is carried out. */
  readonly refuse?: (command: Command) => { code: string; message: string } | null;
}

export class ToneSession {
  readonly id: string;
  /** Every command that came, for tests to look at. */
  readonly commands: Command[] = [];
  readonly #epoch = Math.random().toString(36).slice(2);
  readonly #options: ToneSessionOptions;
  readonly #encoder = new OpusScript(48_000, 1, OpusScript.Application.AUDIO);
  readonly #members = new Set<WebSocket>();
  #queue: Unit[] = [];
  #texts = new Map<string, { text: string; voice: string }>();
  #current: { unit: Unit; next: number; startMs: number; beganAt: number } | null = null;
  #edgeMs = 0;
  #seq = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(id: string, options: ToneSessionOptions) {
    this.id = id;
    this.#options = options;
    this.#timer = setInterval(() => this.#pump(), 10);
  }

  join(socket: WebSocket, query: URLSearchParams): void {
    this.#members.add(socket);
    socket.on("close", () => this.#members.delete(socket));
    socket.on("message", (data) => this.#take(socket, JSON.parse(String(data)) as Command, query));
    const hello: Omit<HelloEvent, "seq" | "at_ms"> = {
      type: "hello",
      protocol: 1,
      server: "tone/1",
      session: this.id,
      epoch: this.#epoch,
      settings: {
        role: query.get("role") === "listener" ? "listener" : "both",
        format: "opus_48000",
        frame_ms: FRAME_MS,
        framing: "raw",
        pace: "realtime",
        lead_ms: LEAD_MS,
        policy: "live",
        events: ["words"],
        offsets: "utf16",
      },
      audio: {
        codec: "opus",
        sample_rate: 48_000,
        channels: 1,
        frame_ms: FRAME_MS,
        frame_samples: FRAME_SAMPLES,
        frame_bytes: null,
        start_ms: this.#edgeMs,
      },
      limits: {
        message_bytes: 1e6,
        text_chars: 1e4,
        dialogue_inputs: 10,
        queued_utterances: 64,
        listeners: 10,
        lead_ms: 1e4,
        outbox_bytes: 1e6,
        marks: 10,
      },
      ignored: [],
    };
    this.#send(socket, hello);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#encoder.delete();
  }

  #take(socket: WebSocket, command: Command, query: URLSearchParams): void {
    this.commands.push(command);
    const refusal = this.#options.refuse?.(command) ?? null;
    const id = "utterance_id" in command ? command.utterance_id : undefined;
    if (refusal !== null) {
      this.#send(socket, {
        type: "error",
        ...refusal,
        retryable: false,
        ...(id === undefined ? {} : { utterance_id: id }),
      });
    } else if (command.type === "speak") {
      this.#enqueue(socket, id ?? "u", [{ text: command.text, voice_id: command.voice_id ?? "voice-a" }]);
    } else if (command.type === "dialogue") this.#enqueue(socket, id ?? "u", command.inputs);
    else if (command.type === "text") {
      const known = this.#texts.get(id ?? "u")?.text ?? "";
      this.#texts.set(id ?? "u", { text: known + command.text, voice: command.voice_id ?? "voice-a" });
    } else if (command.type === "end") {
      const { text, voice } = this.#texts.get(id ?? "u") ?? { text: "", voice: "" };
      this.#enqueue(socket, id ?? "u", [{ text, voice_id: voice }]);
    } else if (command.type === "interrupt") this.#interrupt(socket);
    else if (command.type === "ping") this.#send(socket, { type: "pong", id: command.id });
    else if (command.type === "configure") {
      const audio = { frame_ms: FRAME_MS, start_ms: this.#edgeMs, role: query.get("role") };
      this.#send(socket, { type: "configured", settings: {}, audio, ignored: [] });
    } else if (command.type === "close") socket.close(1000, "session_closed");
  }

  #enqueue(socket: WebSocket, id: string, inputs: readonly { text: string; voice_id: string }[]): void {
    const ahead = this.#queue.length + (this.#current === null ? 0 : 1);
    this.#queue.push(makeUnit(this.#encoder, { id, inputs }));
    this.#send(socket, { type: "utterance.queued", utterance_id: id, ahead });
  }

  #pump(): void {
    const now = performance.now();
    if (this.#current === null) {
      const unit = this.#queue.shift();
      if (unit === undefined) return;
      this.#current = { unit, next: 0, startMs: this.#edgeMs, beganAt: now };
      const started = {
        type: "utterance.started",
        utterance_id: unit.id,
        voice_ids: ["voice-a"],
        source_format: "tone",
      };
      this.#toAll({ ...started, start_ms: this.#edgeMs });
    }
    const { unit, startMs, beganAt } = this.#current;
    while (
      this.#current.next < unit.frames.length &&
      this.#current.next * FRAME_MS <= now - beganAt + LEAD_MS
    ) {
      const frame = unit.frames[this.#current.next];
      this.#current.next += 1;
      const endMs = this.#current.next * FRAME_MS;
      while (unit.events[0] !== undefined && unit.events[0].atMs < endMs) {
        this.#toAll(shifted(unit.events[0].event, startMs));
        unit.events.shift();
      }
      this.#edgeMs = startMs + endMs;
      for (const member of this.#members) if (frame !== undefined) member.send(frame);
    }
    if (this.#current.next >= unit.frames.length && unit.frames.length * FRAME_MS <= now - beganAt)
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
      latency: {
        queued_ms: 2,
        headers_ms: 11,
        first_byte_ms: 24,
        first_frame_ms: 3,
        total_ms: 40,
        leading_silence_ms: 12,
      },
    });
  }

  #interrupt(socket: WebSocket): void {
    const current = this.#current;
    if (current === null) {
      this.#send(socket, {
        type: "error",
        code: "nothing_to_interrupt",
        message: "Nothing speaks",
        retryable: false,
      });
      return;
    }
    this.#queue = [];
    const heardMs = Math.max(0, performance.now() - current.beganAt);
    const { text, words, id } = current.unit;
    const end = words.filter((word) => word.end_ms <= heardMs).at(-1)?.end ?? 0;
    this.#toAll({
      type: "interrupted",
      utterance_id: id,
      heard: { text: text.slice(0, end), end, ms: heardMs, source: "estimate", bound_ms: 40 },
      unheard_text: text.slice(end),
      next_ms: this.#edgeMs,
    });
    this.#finish("interrupted");
  }

  #toAll(event: Record<string, unknown>): void {
    this.#seq += 1;
    for (const member of this.#members) this.#send(member, event);
  }

  #send(socket: WebSocket, event: Record<string, unknown> | Omit<Event, "seq" | "at_ms">): void {
    socket.send(JSON.stringify({ seq: this.#seq, at_ms: this.#edgeMs, ...event }));
  }
}
