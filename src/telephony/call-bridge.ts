/**
 * The phone calls of one session as its other connections meet them: who has called, which keys were pressed, what the caller
 * says, and hanging up. Made with the session's first call, gone with its last.
 */
import { GatewayError } from "../errors.ts";
import type { CallEvent, DtmfEvent } from "../protocol/events.ts";
import { CALLER_FORMATS, type CallerFormat, type EventKind } from "../protocol/vocabulary.ts";
import type { Participant } from "../session/connections/participant.ts";
import type { Session, SessionCalls } from "../session/session.ts";
import type { CallFacts } from "./call-facts.ts";
import { CallerFeed, CallerVoice } from "./caller-voice.ts";

type WithoutBase<E> = Omit<E, "seq" | "at_ms">;
/** A call, as the bridge meets it. */
export interface BridgedCall {
  readonly facts: CallFacts;
  hangUp(): void;
  /** Frames of the caller's voice that a speaker was too slow for. */
  noteDropped(frames: number): void;
}

export class CallBridge implements SessionCalls {
  readonly #session: Session;
  readonly #comfortNoiseDbfs: number;
  /** In the order of coming. */
  readonly #calls = new Set<BridgedCall>();
  /** Speakers that get callers' voices. */
  readonly #feeds = new Map<Participant, CallerFeed>();
  /** The voice of the call that speakers get, in each format asked for. */
  readonly #voices = new Map<CallerFormat, CallerVoice>();
  #speaking: BridgedCall | null = null;

  /** `comfortNoiseDbfs`: noise while a call is here; 0: none. */
  constructor(session: Session, comfortNoiseDbfs = 0) {
    this.#session = session;
    this.#comfortNoiseDbfs = comfortNoiseDbfs;
    for (const participant of session.participants) this.#listen(participant);
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0;
  }

  add(call: BridgedCall): void {
    if (this.#comfortNoiseDbfs !== 0 && this.isEmpty) {
      this.#session.utteranceCommands.setNoise(this.#comfortNoiseDbfs);
    }
    this.#calls.add(call);
    this.#emit("call", { type: "call", state: "started", ...call.facts });
  }

  /** Idempotent. */
  remove(call: BridgedCall, reason: string | undefined): void {
    if (!this.#calls.delete(call)) return;
    if (this.#comfortNoiseDbfs !== 0 && this.isEmpty) this.#session.utteranceCommands.setNoise(null);
    if (this.#speaking === call) this.#forgetVoices();
    this.#emit("call", {
      type: "call",
      state: "ended",
      ...call.facts,
      ...(reason === undefined ? {} : { reason }),
    });
  }

  keyPressed(call: BridgedCall, key: { readonly digit: string; readonly durationMs?: number }): void {
    this.#emit("dtmf", {
      type: "dtmf",
      call_id: call.facts.call_id,
      digit: key.digit,
      ...(key.durationMs === undefined ? {} : { duration_ms: key.durationMs }),
    });
  }

  /** A piece of what the caller says. Frames carry no name: of several calls speakers get the first. */
  hear(call: BridgedCall, audio: Uint8Array): void {
    if (this.#feeds.size === 0) return;
    const [first] = this.#calls;
    const format = CALLER_FORMATS.find((name) => name === call.facts.caller_format);
    if (first !== call || format === undefined) return;
    this.#speaking = call;
    for (const { settings } of this.#feeds.keys()) {
      const { caller } = settings;
      if (caller !== undefined && !this.#voices.has(caller))
        this.#addVoice(call, { from: format, to: caller });
    }
    for (const voice of this.#voices.values()) voice.push(audio);
  }

  joined(participant: Participant): void {
    this.#listen(participant);
    if (!participant.settings.events.includes("call")) return;
    for (const { facts } of this.#calls) {
      participant.send((base) => ({ type: "call", ...base, state: "started", ...facts }));
    }
  }

  drained(participant: Participant): void {
    this.#feeds.get(participant)?.drain();
  }

  left(participant: Participant): void {
    if (!this.#feeds.delete(participant)) return;
    const isWanted = [...this.#feeds.keys()].some(
      ({ settings }) => settings.caller === participant.settings.caller,
    );
    if (isWanted || participant.settings.caller === undefined) return;
    this.#voices.get(participant.settings.caller)?.close();
    this.#voices.delete(participant.settings.caller);
  }

  hangUp(callId: string | undefined): void {
    const calls = [...this.#calls].filter(({ facts }) => callId === undefined || facts.call_id === callId);
    if (calls.length === 0) throw new GatewayError("unknown_call", "Nothing to hang up: no call has this id");
    for (const call of calls) call.hangUp();
  }

  /** Idempotent. */
  close(): void {
    this.#forgetVoices();
    this.#feeds.clear();
  }

  #listen(participant: Participant): void {
    if (participant.settings.caller === undefined) return;
    const emitGap = (gap: { readonly frames: number; readonly ms: number }): void =>
      participant.send((base) => ({ type: "gap", ...base, ...gap }));
    this.#feeds.set(participant, new CallerFeed({ listener: participant.listener, emitGap }));
  }

  #addVoice(call: BridgedCall, formats: { readonly from: CallerFormat; readonly to: CallerFormat }): void {
    const voice = new CallerVoice(formats.from, formats.to, (frame) => {
      for (const [{ settings }, feed] of this.#feeds) {
        if (settings.caller === formats.to) call.noteDropped(feed.push(frame));
      }
    });
    this.#voices.set(formats.to, voice);
  }

  #forgetVoices(): void {
    for (const voice of this.#voices.values()) voice.close();
    this.#voices.clear();
    this.#speaking = null;
  }

  /** At once, and not in the timeline's order: a key that interrupts may not wait for speech that it interrupts. */
  #emit(kind: EventKind, event: WithoutBase<CallEvent> | WithoutBase<DtmfEvent>): void {
    for (const participant of this.#session.participants) {
      if (participant.settings.events.includes(kind)) participant.send((base) => ({ ...event, ...base }));
    }
  }
}
