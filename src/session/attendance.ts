/** Who is at a session: seats connections, greets them, gives back what they missed, and knows when nobody is left. */
import { GatewayError } from "../errors.ts";
import type { Listener } from "../fanout/listener.ts";
import { inOffsets } from "../fanout/logged-event.ts";
import { SendQueue } from "../fanout/send-queue.ts";
import type { Timer } from "../kit/clock.ts";
import { type ListenerSettings, PROTOCOL_VERSION } from "../protocol/vocabulary.ts";
import { styleKey } from "../timing/cues/cue-profiles.ts";
import { msOfTicks } from "../timing/ticks.ts";
import type { Audience, Seat, SeatPlace } from "./audience.ts";
import { styleOf } from "./cue-tracks.ts";
import type { EventWriter } from "./event-writer.ts";
import { startedEvent } from "./events/utterance-events.ts";
import { type ResumeToken, resumeRefusal } from "./listener-resume.ts";
import { ticksOfMs } from "./listeners-heard.ts";
import { Member } from "./member.ts";
import type { PlaybackClock } from "./playback/playback-clock.ts";
import type { PlaybackQueue } from "./playback/playback-queue.ts";
import { TICKS_PER_MS } from "./playback/playhead.ts";
import type { SessionDeps } from "./ports.ts";
import { Presence } from "./presence.ts";
import type { Session } from "./session.ts";

/** Times are told in whole microseconds: a place is the start of a frame that begins so little behind it. */
const ROUNDING_TICKS = TICKS_PER_MS / 1000;

export interface Joining {
  readonly settings: ListenerSettings;
  readonly ignored: readonly string[];
  /** What the connection has already, where it comes back. */
  readonly resume?: ResumeToken | null;
}

export interface AttendanceOptions {
  readonly session: Session;
  readonly deps: SessionDeps;
  readonly audience: Audience;
  readonly queue: PlaybackQueue;
  readonly writer: EventWriter;
  readonly clock: PlaybackClock;
}

/** Where a connection begins. */
interface Place {
  readonly event: number;
  readonly fromTicks: number;
  readonly has: SeatPlace["has"];
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

export class Attendance {
  readonly #options: AttendanceOptions;
  readonly #presence: Presence;
  readonly members = new Set<Member>();
  #nextId = 1;
  #graceTimer: Timer | null = null;

  constructor(options: AttendanceOptions) {
    this.#options = options;
    this.#presence = new Presence({
      clock: options.deps.clock,
      count: () => ({
        listeners: this.#count((member) => member.isListener),
        speakers: this.#count((member) => member.settings.role !== "listener"),
      }),
      tell: (news) => {
        const { writer, clock, audience } = options;
        if (!audience.wants("presence")) return;
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
    for (const member of this.members) if (member.isListener) return true;
    return false;
  }

  /** Throws listener_limit, encoder_failed. */
  join(listener: Listener, joining: Joining): Member {
    const { session, deps, audience, clock } = this.#options;
    const { limits } = deps.tuning;
    if (this.members.size >= limits.listeners) {
      throw new GatewayError(
        "listener_limit",
        `Session is full: ${limits.listeners} connections, which is the limit`,
      );
    }
    const { settings, resume = null } = joining;
    const refusal = resume === null ? null : this.#refusalOf(resume);
    const isResumed = resume !== null && refusal === null;
    const place = isResumed ? this.#placeAfter(resume) : this.#placeNow();
    const member = new Member({
      id: `l${this.#nextId++}`,
      session,
      listener,
      settings,
      seat: this.#seat(listener, settings, place),
    });
    this.members.add(member);
    deps.counters.connectionsOpened += 1;
    this.#graceTimer?.cancel();
    this.#graceTimer = null;
    const lost = isResumed ? this.#lostBy(member, resume, place) : NOTHING_LOST;
    const audio = audience.describe(member.seat.group, member.seat.sendQueue);
    member.send({
      type: "hello",
      ...session.base(),
      protocol: PROTOCOL_VERSION,
      server: deps.server,
      session: session.id,
      epoch: session.epoch,
      listener_id: member.id,
      ...(resume === null ? {} : { resumed: isResumed }),
      settings,
      // A gap or a cut that follows moves the count on to the first frame.
      audio: audio === null ? null : { ...audio, start_ms: audio.start_ms - lost.skippedMs },
      limits,
      ignored: joining.ignored,
    });
    if (isResumed) {
      this.#tellLost(member, lost);
      session.speakers.cameBack(member, resume.listenerId);
    } else {
      if (refusal !== null) this.#tellRefused(member, refusal);
      this.#tellRunning(member);
    }
    if (!this.isListened) this.#tellUnheard(member);
    audience.catchUp(member.seat);
    clock.advance();
    if (this.members.has(member)) this.#presence.changed({ joined: member.id });
    return member;
  }

  /** The connection has gone; `isFinal`: it will not come back. Idempotent. */
  leave(member: Member, { isFinal = false }: { readonly isFinal?: boolean } = {}): void {
    if (!this.members.delete(member)) return;
    const { deps, audience, clock, session } = this.#options;
    deps.counters.connectionsClosed += 1;
    audience.unseat(member.seat, clock.playheadTicks);
    session.speakers.left(member, isFinal || member.hasSaidGoodbye);
    if (this.members.size === 0) {
      this.#startGrace();
      return;
    }
    clock.advance();
    this.#presence.changed({ left: member.id });
  }

  /** Other settings for a connection; it goes on at the playhead. Throws encoder_failed. */
  reseat(member: Member, settings: ListenerSettings): void {
    const { group, sendQueue } = member.seat;
    const event = sendQueue.behind?.event ?? group.event;
    const fromTicks = this.#options.clock.playheadTicks;
    const seat = this.#seat(member.listener, settings, { event, fromTicks, has: "events" });
    this.#options.audience.unseat(member.seat, null);
    member.seat = seat;
    member.settings = settings;
  }

  /** Every connection is closed. Idempotent. */
  close(error: GatewayError): void {
    this.#graceTimer?.cancel();
    this.#presence.close();
    const members = [...this.members];
    this.members.clear();
    this.#options.deps.counters.connectionsClosed += members.length;
    this.#options.audience.close();
    for (const member of members) member.end(error);
  }

  #count(isCounted: (member: Member) => boolean): number {
    let count = 0;
    for (const member of this.members) if (isCounted(member)) count += 1;
    return count;
  }

  #seat(listener: Listener, settings: ListenerSettings, place: Place): Seat {
    const { deps, audience, queue } = this.#options;
    const sendQueue = new SendQueue({
      listener,
      policy: settings.policy,
      offsets: settings.offsets,
      maxOutboxBytes: deps.tuning.limits.outbox_bytes,
    });
    const made = queue.renderedAudio(place.fromTicks);
    const group = audience.seat(sendQueue, settings, { ...place, made });
    if (settings.events.includes("cues")) queue.layOutCues();
    return { group, sendQueue };
  }

  /** A newcomer starts with what is being said and was not heard yet. */
  #placeNow(): Place {
    const { clock, audience, queue } = this.#options;
    const fromTicks = clock.playheadTicks;
    const ids = new Set(queue.unplayed.map((utterance) => utterance.id));
    const event = audience.log.indexWhere(
      (entry) => entry.positionTicks >= fromTicks && entry.utteranceId !== null && ids.has(entry.utteranceId),
    );
    return { event, fromTicks, has: "nothing" };
  }

  #placeAfter(resume: ResumeToken): Place {
    const { audience, clock } = this.#options;
    const { log } = audience;
    const { index } = log.after(resume.seq);
    const fromTicks =
      resume.atMs === null
        ? (log.positionOf(resume.seq) ?? log.entry(index)?.positionTicks ?? clock.playheadTicks)
        : ticksOfMs(resume.atMs) + ROUNDING_TICKS;
    return { event: index, fromTicks, has: "frames" };
  }

  #refusalOf(resume: ResumeToken): string | null {
    const { session, writer, queue } = this.#options;
    const { epoch } = session;
    return resumeRefusal(resume, { epoch, seq: writer.seq, sentMs: msOfTicks(queue.writeTicks) });
  }

  /** What is gone of that which the connection missed. */
  #lostBy(member: Member, resume: ResumeToken, place: Place): Lost {
    const { log } = this.#options.audience;
    const { group, sendQueue } = member.seat;
    const events = log.after(resume.seq).lost;
    const { rendition } = group;
    if (rendition === null) return { ...NOTHING_LOST, events };
    const first = sendQueue.behind?.frame ?? group.frame;
    // Frames stand on a grid: the first one may hold some of what the connection has.
    const skipped = rendition.countBetween(place.fromTicks, first);
    // What an interruption took away was not missed.
    const { nextTicks } = log.before(place.event, rendition.startTicksOf(first));
    const frames = rendition.countBetween(Math.max(place.fromTicks, nextTicks ?? 0), first);
    const { frameMs } = rendition;
    return { skippedMs: skipped * frameMs, frames, ms: frames * frameMs, events };
  }

  /** The events before the gap come before it: a cut among them moves the count of frames. */
  #tellLost(member: Member, { skippedMs, frames, ms, events }: Lost): void {
    const { deps, session } = this.#options;
    const { group, sendQueue } = member.seat;
    deps.counters.listenersResumed += 1;
    if (skippedMs > 0 && group.rendition !== null) {
      group.replay(sendQueue, group.rendition.startTicksOf(sendQueue.behind?.frame ?? group.frame));
    }
    if (frames === 0 && events === 0) return;
    deps.counters.framesDropped += frames;
    member.send({ type: "gap", ...session.base(), frames, ms, ...(events === 0 ? {} : { events }) });
  }

  #tellRefused(member: Member, refusal: string): void {
    const { deps, session } = this.#options;
    deps.counters.resumesRefused += 1;
    member.send({
      type: "warning",
      ...session.base(),
      code: "resume_refused",
      message: `Connection joins anew at the playhead: ${refusal}`,
    });
  }

  #tellUnheard(member: Member): void {
    if (this.#options.deps.tuning.speaksToNobody) return;
    member.send({
      type: "warning",
      ...this.#options.session.base(),
      code: "nobody_listens",
      message: "Nobody listens to this session yet: what is said waits until somebody does",
    });
  }

  /** A late joiner learns what is being said, and the cue that stands. */
  #tellRunning(member: Member): void {
    const { clock, queue, session, audience } = this.#options;
    const { playheadTicks } = clock;
    for (const utterance of queue.unplayed) {
      if (utterance.startTicks === null || utterance.startTicks >= playheadTicks) continue;
      member.send(startedEvent(session.base(), utterance));
      const style = styleOf(member.settings);
      const cue = member.settings.events.includes("cues")
        ? utterance.cues?.at(playheadTicks, style)
        : undefined;
      if (cue !== undefined && !this.#hasCueToCome(member, utterance.id)) {
        member.send(inOffsets(member.settings.offsets, cue(session.base()), utterance.text));
      }
    }
    audience.catchUp(member.seat);
  }

  /** Whether the cue that stands was written, behind what others were told already, and comes with the events that follow. */
  #hasCueToCome(member: Member, utteranceId: string): boolean {
    const { audience, clock } = this.#options;
    const { group, sendQueue } = member.seat;
    const variant = styleKey(styleOf(member.settings));
    return audience.log.hasBehind(
      group.undeliveredEvent(sendQueue),
      (entry) =>
        entry.kind === "cues" &&
        entry.variant === variant &&
        entry.utteranceId === utteranceId &&
        !entry.isWithdrawn &&
        entry.positionTicks < clock.playheadTicks,
    );
  }

  #startGrace(): void {
    const { session, deps } = this.#options;
    const { clock, tuning } = deps;
    this.#graceTimer?.cancel();
    this.#graceTimer = clock.at(clock.nowMs() + tuning.graceMs, () => {
      session.close(
        new GatewayError("session_closed", `Session ended: nobody was connected for ${tuning.graceMs} ms`),
      );
    });
  }
}
