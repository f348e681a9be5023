/**
 * The connections of a session: takes them in, greets them, gives back what they missed, and starts the grace period when
 * the last one has left.
 */

import { inOffsets } from "../../delivery/event-log.ts";
import type { Listener } from "../../delivery/listener.ts";
import { ListenerCursor } from "../../delivery/listener-cursor.ts";
import { GatewayError } from "../../errors.ts";
import type { Timer } from "../../kit/clock.ts";
import { laterMs } from "../../kit/spread.ts";
import { closingEvent, type HelloEvent } from "../../protocol/events.ts";
import { type ListenerSettings, PROTOCOL_VERSION } from "../../protocol/vocabulary.ts";
import { styleKey } from "../../timing/cues/cue-profiles.ts";
import { msOfTicks, TICKS_PER_MS } from "../../timing/ticks.ts";
import { styleOf } from "../captions/cue-tracks.ts";
import type { EventWriter } from "../events/event-writer.ts";
import { startedEvent } from "../events/utterance-events.ts";
import type { OutputRouter, Subscription, SubscriptionStart } from "../output/output-router.ts";
import type { OpusAccount } from "../payer.ts";
import type { PlaybackClock } from "../playback/playback-clock.ts";
import type { PlaybackQueue } from "../playback/playback-queue.ts";
import type { SavedConnection } from "../saved-session.ts";
import { limitsOf, type SessionDeps } from "../session-deps.ts";
import type { Tape } from "../tape/tape.ts";
import type { Speakers } from "../text-input/speakers.ts";
import { receivedIn } from "../text-input/text-place.ts";
import { Participant } from "./participant.ts";
import { Presence } from "./presence.ts";
import {
  type ReturnPoint,
  type ReturnRequest,
  ReturnTokens,
  returnRefusal,
  type Written,
} from "./return-token.ts";

/** Clients know times in whole microseconds: a frame that begins so little behind such a time begins at it. */
const ROUNDING_TICKS = TICKS_PER_MS / 1000;

export interface Joining {
  readonly settings: ListenerSettings;
  readonly ignored: readonly string[];
  /** What the connection has already, where it comes back. */
  readonly resume?: ReturnRequest | null;
  /** See Participant. */
  readonly holder?: string;
  readonly tenant?: string;
  readonly mayInterrupt?: () => boolean;
  /** It begins there, with all that is said from there on; null: at the playhead. */
  readonly fromTicks?: number | null;
  readonly opusAccount?: OpusAccount;
}

/** As `hello` names the session. */
interface SessionIdentity {
  readonly id: string;
  readonly epoch: string;
}

export interface ConnectionRegistryOptions {
  readonly session: SessionIdentity;
  /** Who is there; kept here, and read by others. */
  readonly participants: Set<Participant>;
  readonly speakers: Speakers;
  /** Nobody was there for the grace period. */
  readonly onDeserted: (error: GatewayError) => void;
  readonly deps: SessionDeps;
  readonly output: OutputRouter;
  readonly queue: PlaybackQueue;
  readonly writer: EventWriter;
  readonly clock: PlaybackClock;
}

/** Where a connection begins. */
interface Place {
  readonly event: number;
  readonly fromTicks: number;
  readonly has: SubscriptionStart["has"];
}

/** What a connection missed and can't get. */
interface Lost {
  /** From where it was to its first frame. */
  readonly skippedMs: number;
  readonly frames: number;
  readonly ms: number;
  readonly events: number;
}

const NOTHING_LOST: Lost = { skippedMs: 0, frames: 0, ms: 0, events: 0 };

export class ConnectionRegistry {
  readonly #options: ConnectionRegistryOptions;
  readonly #presence: Presence;
  readonly #tokens: ReturnTokens;
  readonly #participants: Set<Participant>;
  /** Connections of the node that had the session before, by token. */
  #former: ReadonlyMap<string, SavedConnection> = new Map();
  #formerEpoch: string | null = null;
  #nextId = 1;
  #graceTimer: Timer | null = null;

  constructor(options: ConnectionRegistryOptions) {
    this.#options = options;
    this.#participants = options.participants;
    const { clock, settings } = options.deps;
    this.#tokens = new ReturnTokens({ clock, maxGone: settings.maxListeners });
    this.#presence = new Presence({
      clock: options.deps.clock,
      count: () => ({
        listeners: this.#count((participant) => participant.isListener),
        speakers: this.#count((participant) => participant.settings.role !== "listener"),
      }),
      emit: (news) => {
        const { writer, clock, output } = options;
        if (!output.wants("presence")) return;
        writer.write({ positionTicks: clock.playheadTicks, kind: "presence", utterance: null }, (base) => ({
          type: "presence",
          ...base,
          ...news,
        }));
        clock.advance();
      },
    });
    this.#startGrace();
  }

  /** Whether anybody hears or follows what is said. */
  get isListened(): boolean {
    for (const participant of this.#participants) if (participant.isListener) return true;
    return false;
  }

  /** Throws listener_limit, encoder_failed. */
  join(listener: Listener, joining: Joining): Participant {
    const { session, deps, output, clock, speakers } = this.#options;
    const { maxListeners } = deps.settings;
    if (this.#participants.size >= maxListeners) {
      throw new GatewayError(
        "listener_limit",
        `Session is full: ${maxListeners} connections, which is the limit`,
      );
    }
    const {
      settings,
      resume = null,
      holder = "",
      tenant = "",
      mayInterrupt,
      fromTicks = null,
      opusAccount = null,
    } = joining;
    const had = resume === null ? null : this.#pointOf(resume, holder);
    const point = typeof had === "string" ? null : had;
    const place = point === null ? this.#placeAt(fromTicks) : this.#placeAfter(point);
    const participant = new Participant({
      id: `l${this.#nextId++}`,
      returnToken: newToken(deps.tape),
      listener,
      settings,
      holder,
      tenant,
      ...(mayInterrupt === undefined ? {} : { mayInterrupt }),
      opusAccount,
      subscription: this.#subscribe({ listener, opusAccount }, settings, place),
      textOptions: deps.settings.textDefaults,
      ...(deps.tape === undefined ? {} : { tape: deps.tape }),
      moment: () => ({ nowMs: deps.clock.nowMs(), playheadTicks: clock.playheadTicks }),
    });
    this.#participants.add(participant);
    this.#tokens.joined(participant);
    deps.counters.connectionsOpened += 1;
    this.#graceTimer?.cancel();
    this.#graceTimer = null;
    const lost = point === null ? NOTHING_LOST : this.#lostBy(participant, point, place);
    const audio = participant.describeAudio();
    const former = point === null ? this.#formerOf(resume, holder) : null;
    const isBack = point !== null || former !== null;
    participant.send((base) => ({
      type: "hello",
      ...base,
      protocol: PROTOCOL_VERSION,
      server: deps.server,
      session: session.id,
      epoch: session.epoch,
      ...(this.#formerEpoch === null
        ? {}
        : { former_epoch: this.#formerEpoch, utterances: this.#options.queue.notOver.map(({ id }) => id) }),
      listener_id: participant.id,
      resume_token: participant.returnToken,
      ...(had === null ? {} : { resumed: point !== null }),
      ...(isBack && settings.role !== "listener" ? { texts: this.#textsOf(participant) } : {}),
      settings,
      // A gap or a cut that follows moves the count on to the first frame.
      audio: audio === null ? null : { ...audio, start_ms: audio.start_ms - lost.skippedMs },
      limits: limitsOf(deps.settings),
      ignored: joining.ignored,
    }));
    if (point === null) {
      if (former !== null) speakers.cameBack(participant, former.listenerId);
      else if (typeof had === "string") this.#reportRefusal(participant, had);
      this.#catchUpWithSpeech(participant);
    } else {
      this.#reportLoss(participant, lost);
      if (point.listenerId !== null) speakers.cameBack(participant, point.listenerId);
    }
    if (!this.isListened) this.#reportNobodyListens(participant);
    output.catchUp(participant.subscription);
    clock.advance();
    if (this.#participants.has(participant)) this.#presence.changed({ joined: participant.id });
    return participant;
  }

  /** Connections that another node had, and that may come back here. */
  restore(connections: readonly SavedConnection[], formerEpoch: string): void {
    this.#formerEpoch = formerEpoch;
    this.#former = new Map(connections.map((connection) => [connection.token, connection]));
    // None of them is taken for another one.
    for (const { listenerId } of connections) {
      this.#nextId = Math.max(this.#nextId, Number(listenerId.slice(1)) + 1);
    }
    for (const { listenerId, openIds, currentId } of connections) {
      this.#options.speakers.leftElsewhere(listenerId, { ids: new Set(openIds), currentId });
    }
  }

  /** How much has come of each text: what was sent last may not have. */
  #textsOf({ holder, settings }: Participant): NonNullable<HelloEvent["texts"]> {
    return this.#options.queue.textsOf(holder).map(({ id, input }) => ({
      utterance_id: id,
      text_received: receivedIn(settings.offsets, input),
      ended: input.isEnded,
    }));
  }

  #formerOf(resume: ReturnRequest | null, holder: string): SavedConnection | null {
    const known = resume?.kind === "token" ? this.#former.get(resume.token) : undefined;
    return known?.holder === holder ? known : null;
  }

  /** The connection has gone; `isFinal`: it will not come back. Idempotent. */
  leave(participant: Participant, { isFinal = false }: { readonly isFinal?: boolean } = {}): void {
    if (!this.#participants.delete(participant)) return;
    const { deps, output, clock, speakers } = this.#options;
    deps.counters.connectionsClosed += 1;
    this.#tokens.left(participant, this.#writtenTo(participant));
    output.unsubscribe(participant.subscription, clock.playheadTicks);
    speakers.left(participant, isFinal || participant.hasSaidGoodbye);
    if (this.#participants.size === 0) {
      this.#startGrace();
      return;
    }
    clock.advance();
    this.#presence.changed({ left: participant.id });
  }

  /** Other settings for a connection; it goes on at the playhead. Throws listener_limit, encoder_failed. */
  resubscribe(participant: Participant, settings: ListenerSettings): void {
    const { group, cursor } = participant.subscription;
    const event = cursor.behind?.event ?? group.event;
    const fromTicks = this.#options.clock.playheadTicks;
    const subscription = this.#subscribe(participant, settings, { event, fromTicks, has: "events" });
    this.#options.output.unsubscribe(participant.subscription, null);
    participant.subscription = subscription;
    participant.settings = settings;
  }

  /** Every connection is closed. Idempotent. */
  close(error: GatewayError): void {
    this.#graceTimer?.cancel();
    this.#presence.close();
    const participants = [...this.#participants];
    this.#participants.clear();
    this.#options.deps.counters.connectionsClosed += participants.length;
    this.#options.output.close();
    for (const [index, participant] of participants.entries()) {
      const { retryAfterMs } = error;
      // A close frame has no room for it.
      if (retryAfterMs !== undefined) {
        const retry_after_ms = retryAfterMs + laterMs(index, participants.length);
        participant.send((base) => ({ ...closingEvent(error, base), retry_after_ms }));
      }
      participant.end(error);
    }
  }

  #count(isCounted: (participant: Participant) => boolean): number {
    let count = 0;
    for (const participant of this.#participants) if (isCounted(participant)) count += 1;
    return count;
  }

  /** Throws listener_limit, encoder_failed. */
  #subscribe(
    { listener, opusAccount }: Pick<Participant, "listener" | "opusAccount">,
    settings: ListenerSettings,
    place: Place,
  ): Subscription {
    const letGo = this.#options.output.countOpus(settings, opusAccount);
    try {
      return { ...this.#subscribed(listener, settings, place), letGo };
    } catch (thrown) {
      letGo();
      throw thrown;
    }
  }

  #subscribed(listener: Listener, settings: ListenerSettings, place: Place): Omit<Subscription, "letGo"> {
    const { deps, output, queue } = this.#options;
    const cursor = new ListenerCursor({
      listener,
      policy: settings.policy,
      offsets: settings.offsets,
      maxOutboxBytes: deps.settings.maxOutboxBytes,
      onEnd: (error) => deps.counters.refusals.sentToOneMore(error),
    });
    const rendered = queue.renderedAudio(place.fromTicks);
    const group = output.subscribe(cursor, settings, { ...place, rendered });
    if (settings.events.includes("cues")) queue.layOutCues();
    return { group, cursor };
  }

  /** A newcomer starts with the speech that goes on, where the playhead is, or before. */
  #placeAt(wantedTicks: number | null): Place {
    const { clock, output, queue } = this.#options;
    const { playheadTicks } = clock;
    const fromTicks = Math.min(wantedTicks ?? playheadTicks, playheadTicks);
    const ids = new Set(queue.notOver.map((utterance) => utterance.id));
    const event = output.log.indexWhere(
      (entry) => entry.positionTicks >= fromTicks && entry.utteranceId !== null && ids.has(entry.utteranceId),
    );
    return { event, fromTicks, has: "nothing" };
  }

  #placeAfter({ seq, ticks }: ReturnPoint): Place {
    const { output, clock } = this.#options;
    const { log } = output;
    const { index } = log.after(seq);
    const fromTicks = ticks ?? log.positionOf(seq) ?? log.entry(index)?.positionTicks ?? clock.playheadTicks;
    return { event: index, fromTicks, has: "frames" };
  }

  #writtenTo(participant: Participant): Written {
    const ticks = participant.subscription.group.rendition === null ? null : participant.sentTicks(0);
    return { holder: participant.holder, listenerId: participant.id, seq: participant.sentSeq, ticks };
  }

  /** What a connection that comes back has; in words, why it can't go on there. */
  #pointOf(request: ReturnRequest, holder: string): ReturnPoint | string {
    const { session, writer, queue } = this.#options;
    const known = request.kind === "token" ? this.#tokens.find(request.token) : null;
    // A connection's texts and its place are those of who opened it, whoever has seen its token.
    const found = known?.holder === holder ? known : null;
    // Where its end has not been seen yet, what was written to it by now.
    const written = found instanceof Participant ? this.#writtenTo(found) : found;
    const facts = { epoch: session.epoch, seq: writer.seq, sentMs: msOfTicks(queue.writeTicks), written };
    const refusal = returnRefusal(request, facts);
    if (refusal !== null) return refusal;
    const atMs = request.kind === "token" ? request.atMs : null;
    return {
      seq: request.seq ?? written?.seq ?? 0,
      ticks: atMs === null ? (written?.ticks ?? null) : Math.round(atMs * TICKS_PER_MS) + ROUNDING_TICKS,
      listenerId: written?.listenerId ?? null,
    };
  }

  /** What the connection missed and can't get any more. */
  #lostBy(participant: Participant, { seq }: ReturnPoint, place: Place): Lost {
    const { log } = this.#options.output;
    const { group, cursor } = participant.subscription;
    const events = log.after(seq).lost;
    const { rendition } = group;
    if (rendition === null) return { ...NOTHING_LOST, events };
    const first = group.nextFrame(cursor);
    // Frames stand on a grid: the first one may hold some audio that the connection has.
    const skipped = rendition.countBetween(place.fromTicks, first);
    // What an interruption took away was not missed.
    const { nextTicks } = log.before(place.event, rendition.startTicksOf(first));
    const frames = rendition.countBetween(Math.max(place.fromTicks, nextTicks ?? 0), first);
    const { frameMs } = rendition;
    return { skippedMs: skipped * frameMs, frames, ms: frames * frameMs, events };
  }

  /** The events before the gap come before it: a cut among them moves the count of frames. */
  #reportLoss(participant: Participant, { skippedMs, frames, ms, events }: Lost): void {
    const { deps } = this.#options;
    const { group, cursor } = participant.subscription;
    deps.counters.listenersResumed += 1;
    if (skippedMs > 0 && group.rendition !== null) {
      group.sendEventsBefore(cursor, group.rendition.startTicksOf(group.nextFrame(cursor)));
    }
    if (frames === 0 && events === 0) return;
    deps.counters.framesDropped += frames;
    participant.send((base) => ({ type: "gap", ...base, frames, ms, ...(events === 0 ? {} : { events }) }));
  }

  #reportRefusal(participant: Participant, refusal: string): void {
    this.#options.deps.counters.resumesRefused += 1;
    const message = `Connection joins at the playhead: ${refusal}`;
    participant.send((base) => ({ type: "warning", ...base, code: "resume_refused", message }));
  }

  #reportNobodyListens(participant: Participant): void {
    if (this.#options.deps.settings.nobodyListens === "speak") return;
    const message = "Nobody listens to this session yet: what is said waits until somebody does";
    participant.send((base) => ({ type: "warning", ...base, code: "nobody_listens", message }));
  }

  /** A late joiner learns what is being said, and the cue that stands. */
  #catchUpWithSpeech(participant: Participant): void {
    const { clock, queue, output } = this.#options;
    const { playheadTicks } = clock;
    for (const utterance of queue.notOver) {
      if (utterance.startTicks === null || utterance.startTicks >= playheadTicks) continue;
      participant.send((base) => startedEvent(base, utterance));
      const style = styleOf(participant.settings);
      const cue = participant.settings.events.includes("cues")
        ? utterance.transcript.cues?.at(playheadTicks, style)
        : undefined;
      if (cue !== undefined && !this.#hasCueToCome(participant, utterance.id)) {
        const { offsets } = participant.settings;
        participant.send((base) => inOffsets(offsets, cue(base), utterance.text));
      }
    }
    output.catchUp(participant.subscription);
  }

  /** Whether the cue that is shown now is in the log behind what this connection was sent: then it comes with the events that follow. */
  #hasCueToCome(participant: Participant, utteranceId: string): boolean {
    const { output, clock } = this.#options;
    const { group, cursor } = participant.subscription;
    const cueStyle = styleKey(styleOf(participant.settings));
    return output.log.hasBehind(
      group.unsentEvent(cursor),
      (entry) =>
        entry.kind === "cues" &&
        entry.cueStyle === cueStyle &&
        entry.utteranceId === utteranceId &&
        !entry.isWithdrawn &&
        entry.positionTicks < clock.playheadTicks,
    );
  }

  #startGrace(): void {
    const { deps, onDeserted } = this.#options;
    const { clock, settings } = deps;
    this.#graceTimer?.cancel();
    this.#graceTimer = clock.at(clock.nowMs() + settings.graceMs, () => {
      onDeserted(
        new GatewayError("session_closed", `Session ended: nobody was connected for ${settings.graceMs} ms`),
      );
    });
  }
}

function newToken(tape: Tape | undefined): string {
  if (tape === undefined) return ReturnTokens.next();
  return tape.tell("token", [], () => ({ resume_token: ReturnTokens.next() })).resume_token;
}
