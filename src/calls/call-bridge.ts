/**
 * The phone calls of one session as its other connections meet them: who has called, what was dialled, what the caller
 * says, and hanging up. Made with the session's first call, gone with its last.
 */
import { GatewayError } from "../errors.ts";
import type { CallEvent, DtmfEvent } from "../protocol/events.ts";
import type { CallerFormat, EventKind } from "../protocol/vocabulary.ts";
import type { Member } from "../session/member.ts";
import type { Session, SessionCalls } from "../session/session.ts";
import type { CallFacts } from "./call-facts.ts";
import { CallerFeed, CallerVoice, type HeardFormat } from "./caller-voice.ts";

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
  /** In the order of coming. */
  readonly #calls = new Set<BridgedCall>();
  /** Who hears callers. */
  readonly #feeds = new Map<Member, CallerFeed>();
  /** The voice of the call that is heard, in each format asked for. */
  readonly #voices = new Map<CallerFormat, CallerVoice>();
  #heard: BridgedCall | null = null;

  constructor(session: Session) {
    this.#session = session;
    for (const member of session.members) this.#listen(member);
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0;
  }

  add(call: BridgedCall): void {
    this.#calls.add(call);
    this.#tell("call", { type: "call", state: "started", ...call.facts });
  }

  /** Idempotent. */
  remove(call: BridgedCall, reason: string | undefined): void {
    if (!this.#calls.delete(call)) return;
    if (this.#heard === call) this.#forgetVoices();
    this.#tell("call", {
      type: "call",
      state: "ended",
      ...call.facts,
      ...(reason === undefined ? {} : { reason }),
    });
  }

  dialled(call: BridgedCall, key: { readonly digit: string; readonly durationMs?: number }): void {
    this.#tell("dtmf", {
      type: "dtmf",
      call_id: call.facts.call_id,
      digit: key.digit,
      ...(key.durationMs === undefined ? {} : { duration_ms: key.durationMs }),
    });
  }

  /** A piece of what the caller says. Frames carry no name: of several calls the first is heard. */
  hear(call: BridgedCall, audio: Uint8Array): void {
    if (this.#feeds.size === 0) return;
    const [first] = this.#calls;
    const format = call.facts.caller_format;
    if (first !== call || format === null || format === "opus_48000") return;
    this.#heard = call;
    for (const { settings } of this.#feeds.keys()) {
      const { caller } = settings;
      if (caller !== undefined && !this.#voices.has(caller))
        this.#addVoice(call, { from: format, to: caller });
    }
    for (const voice of this.#voices.values()) voice.push(audio);
  }

  joined(member: Member): void {
    this.#listen(member);
    if (!member.settings.events.includes("call")) return;
    for (const { facts } of this.#calls) {
      member.send({ type: "call", ...this.#session.base(), state: "started", ...facts });
    }
  }

  drained(member: Member): void {
    this.#feeds.get(member)?.drain();
  }

  left(member: Member): void {
    if (!this.#feeds.delete(member)) return;
    const isWanted = [...this.#feeds.keys()].some(
      ({ settings }) => settings.caller === member.settings.caller,
    );
    if (isWanted || member.settings.caller === undefined) return;
    this.#voices.get(member.settings.caller)?.close();
    this.#voices.delete(member.settings.caller);
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

  #listen(member: Member): void {
    if (member.settings.caller === undefined) return;
    const emitGap = (gap: { readonly frames: number; readonly ms: number }): void =>
      member.send({ type: "gap", ...this.#session.base(), ...gap });
    this.#feeds.set(member, new CallerFeed({ listener: member.listener, emitGap }));
  }

  #addVoice(call: BridgedCall, formats: { readonly from: HeardFormat; readonly to: CallerFormat }): void {
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
    this.#heard = null;
  }

  /** At once, and not in the timeline's order: a key that interrupts may not wait for speech that it interrupts. */
  #tell(kind: EventKind, event: WithoutBase<CallEvent> | WithoutBase<DtmfEvent>): void {
    for (const member of this.#session.members) {
      if (member.settings.events.includes(kind)) member.send({ ...event, ...this.#session.base() });
    }
  }
}
