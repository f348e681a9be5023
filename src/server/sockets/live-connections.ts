/**
 * Clients of the native protocol: they join a session, their commands are carried out, and they leave. This module does
 * not know how messages come: by a socket of this process (live-socket.ts) or from another node (relayed/relay-host.ts).
 */
import { forbidden } from "../../access/access-error.ts";
import { isRefusal } from "../../access/audit.ts";
import type { Caller } from "../../access/caller.ts";
import { ConnectionAudit } from "../../access/connection-audit.ts";
import { claimAt, type Door, identifyAt } from "../../access/door.ts";
import type { LeaseHolder } from "../../access/lease.ts";
import type { LowBudget } from "../../access/limits/scope-counts.ts";
import { mustFollow } from "../../access/narrower.ts";
import type { LiveCluster } from "../../cluster/cluster.ts";
import { movedAway } from "../../cluster/come-back.ts";
import type { ArrivedSocket } from "../../cluster/relay/relay.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import { ABNORMAL_CLOSURE } from "../../kit/close-codes.ts";
import type { Logger } from "../../kit/log.ts";
import type { Counters } from "../../metrics/counters.ts";
import { type Command, parseCommand } from "../../protocol/commands.ts";
import { closingEvent, errorBody } from "../../protocol/events.ts";
import { styleOf } from "../../session/captions/cue-tracks.ts";
import { endTexts, goesOn, handleCommand, isSpeaking, type SessionCommand } from "../../session/carry-out.ts";
import type { Participant } from "../../session/connections/participant.ts";
import { parseLastEventId } from "../../session/connections/return-token.ts";
import {
  type ParsedSettings,
  parseSettings,
  type SettingsDefaults,
} from "../../session/listener-settings.ts";
import { enterSession, type SessionPlace } from "../../session/place.ts";
import { checkId, type Sessions } from "../../session/sessions.ts";
import { passedQuery, passFacts } from "../passed-facts.ts";
import type { Bytes } from "./backlog.ts";
import type { FairScheduler } from "./fair-scheduler.ts";
import { Inbox, type Receiver } from "./inbox.ts";
import { checkCommand, checkSettings, queryOf } from "./live-access.ts";
import type { Arrival, ClientListener, LiveConnection } from "./live-connection.ts";
import { LostClients } from "./lost-clients.ts";
import { Reconnects } from "./reconnects.ts";
import { RedeemedSocket } from "./redeemed-socket.ts";
import { MAX_REFUSALS_A_SECOND } from "./refusals.ts";
import { textReader } from "./websocket.ts";

export interface LiveConnectionsOptions {
  readonly sessions: Sessions;
  readonly log: Logger;
  readonly defaults: SettingsDefaults;
  readonly maxMessageBytes: number;
  readonly clock: Clock;
  readonly counters: Counters;
  /** Shares out time between connections that bring many messages at once. */
  readonly scheduler: FairScheduler;
  /** See inboxBytes. */
  readonly maxInboxBytes: number;
  readonly door: Door;
  /** The nodes that sessions may be at; null: this one is alone. */
  readonly cluster: LiveCluster | null;
}

/** Codes of applications begin here (RFC 6455 7.4.2): those of the gateway's errors. */
const FIRST_OWN_CODE = 4000;
/** What was accepted before a token expired is spoken to its end: so often it is looked whether it was, ms. */
const LAST_WORDS_POLL_MS = 50;

export class LiveConnections {
  readonly #options: LiveConnectionsOptions;
  readonly #reconnects = new Reconnects();
  readonly #lostClients: LostClients;
  readonly #receiver: Receiver<LiveConnection>;

  constructor(options: LiveConnectionsOptions) {
    this.#options = options;
    this.#lostClients = new LostClients(options.cluster);
    this.#receiver = liveReceiver(options, { reconnects: this.#reconnects, lostClients: this.#lostClients });
  }

  /** The client is there. It joins its session, or hears why not and is closed. */
  opened(data: LiveConnection, listener: ClientListener): void {
    const { scheduler } = this.#options;
    data.listener = listener;
    const inbox = new Inbox({ scheduler, receiver: this.#receiver, connection: data });
    data.inbox = inbox;
    try {
      const joining = joiningOf(data, this.#options);
      const { resume, settings } = joining;
      if (resume?.kind === "token") this.#lostClients.check(resume.token);
      const mayHaveSaid = resume?.kind === "token" && settings.role !== "listener";
      data.returnToken = mayHaveSaid ? resume.token : null;
      const former = this.#reconnects.formerOf(data);
      if (former === null) {
        this.#enter(data, joining);
        return;
      }
      inbox.follow(former, () => this.#enter(data, joining));
      this.#reconnects.note(data);
    } catch (thrown) {
      this.#refused(data, thrown);
    }
  }

  /** Its bytes are lent for the call. */
  message(data: LiveConnection, message: Bytes, isBinary: boolean): void {
    data.inbox?.take(message, isBinary);
    this.#reconnects.note(data);
  }

  /** What waited for it has been sent. */
  drained({ joined, owner }: LiveConnection): void {
    owner?.drained();
    joined?.session.drained(joined.participant);
  }

  /** Behind its last message. `code` as RFC 6455 has it. */
  closed({ listener, inbox, owner }: LiveConnection, code: number): void {
    listener?.markClosed();
    inbox?.close(code, { wantsRest: listener?.isEnded === false });
    // It may have been ended from here: what was to be said to its owner has been.
    if (listener?.isEnded === true) owner?.closed(code);
  }

  /** Joins its session here, or goes on to the node where that is. */
  #enter(data: LiveConnection, joining: ParsedSettings): void {
    const { sessionId, caller, inbox } = data;
    const mayOpen = mayOpenFor(joining) && caller.may("open", sessionId);
    // A client that another node sent here does not go on to a third one.
    const mayMove = data.listener?.arrived() !== null;
    // At once where the session's place is known: then nothing is held.
    let whenReady = (enter: () => void): void => enter();
    const entering = enterSession(this.#options.cluster, { sessionId, mayOpen, mayMove }, (place) =>
      whenReady(() => this.#enterAt(place, data, joining)),
    );
    if (entering === null || inbox === null) return;
    whenReady = inbox.hold();
    entering.catch((thrown: unknown) => whenReady(() => this.#refused(data, thrown)));
  }

  #enterAt(place: SessionPlace, data: LiveConnection, joining: ParsedSettings): void {
    if (place === "here") {
      join(data, joining, this.#options);
      return;
    }
    try {
      const socket = data.listener?.arrived() ?? null;
      const { cluster } = this.#options;
      // Its own node believed that the session is here.
      if (socket === null || cluster === null) throw movedAway();
      data.owner = cluster.connect(place.owner, liveFacts(data), this.#redeemed(data.caller, socket));
    } catch (thrown) {
      this.#refused(data, thrown);
    }
  }

  #redeemed(caller: Caller, socket: ArrivedSocket): ArrivedSocket {
    if (!caller.isSingleUse) return socket;
    return new RedeemedSocket(socket, () => this.#options.door.access.giveBack(caller));
  }

  #refused(data: LiveConnection, thrown: unknown): void {
    this.#options.door.access.giveBack(data.caller);
    auditRefusal(data, thrown, this.#options);
    if (data.listener !== null) closeWith(data.listener, report(thrown, this.#options.log));
  }
}

/** What the session's node has to know of a client. */
export function liveFacts({ sessionId, caller, address, query, origin, http }: Arrival): object {
  const client = { sessionId, caller, address };
  return passFacts("client", client, { query: passedQuery(query, caller), origin, http });
}

/** What the connection asks for, by its query and its token. Throws invalid_field, forbidden. */
function joiningOf(
  { query, caller, sessionId, http }: LiveConnection,
  options: LiveConnectionsOptions,
): ParsedSettings {
  const asked = http === null ? queryOf(query, caller, sessionId) : new URLSearchParams(query);
  const joining = parseSettings(asked, options.defaults);
  checkSettings(caller, sessionId, joining.settings);
  checkId(sessionId);
  return http?.lastEventId ? { ...joining, resume: parseLastEventId(http.lastEventId) } : joining;
}

/** A listener opens none unless it would wait for a speaker. */
function mayOpenFor({ settings, mayWait }: ParsedSettings): boolean {
  return settings.role !== "listener" || mayWait;
}

/** Joins the session. A refusal is sent to the client, and the connection closed. */
function join(data: LiveConnection, joining: ParsedSettings, options: LiveConnectionsOptions): void {
  const { sessions, log, door } = options;
  const { listener, caller, sessionId } = data;
  if (listener === null) return;
  // One that had to wait may have gone by now: its messages are handled, and then its inbox reports the end.
  const isGone = listener.isClosed;
  try {
    const mayOpen = mayOpenFor(joining);
    const claim = (): (() => void) => door.limits.openSession(caller, data.address);
    const session =
      mayOpen && caller.may("open", sessionId) ? sessions.open(sessionId, claim) : sessions.get(sessionId);
    // Its captions are remembered from now on, as for those who read them here.
    if (typeof data.http?.lastEventId === "string") session.captionsOf(styleOf(joining.settings));
    const callerNow = (): Caller => data.lease?.caller ?? caller;
    const mayInterrupt = (): boolean => !caller.isAnybody && callerNow().may("interrupt", sessionId);
    // Nobody comes back as another's connection, whoever has seen its resume_token.
    const participant = session.join(listener, {
      ...joining,
      holder: caller.identity,
      tenant: caller.tenant,
      mayInterrupt,
      opusAccount: door.limits.opusAccount(caller, data.address),
    });
    const budget = door.limits.speechBudget(callerNow, (low) => warnOfBudget(participant, low));
    const subject = door.limits.upstreamSubject(caller, data.address);
    data.joined = { session, participant, subject, budget };
    // What comes over HTTP ends at its own node with its key or token.
    if (!caller.isAnybody && data.http === null)
      data.lease = door.leases.begin(caller, leaseHolder(data, options));
    // Greeting it may have closed it: its close handler did not know of the participant yet.
    if (listener.isClosed && !isGone) session.leave(participant);
  } catch (thrown) {
    door.access.giveBack(caller);
    auditRefusal(data, thrown, options);
    closeWith(listener, report(thrown, log));
  }
}

interface Returning {
  readonly reconnects: Reconnects;
  readonly lostClients: LostClients;
}

function liveReceiver(
  options: LiveConnectionsOptions,
  { reconnects, lostClients }: Returning,
): Receiver<LiveConnection> {
  const textOf = textReader(options.maxMessageBytes);
  return {
    maxInboxBytes: options.maxInboxBytes,
    beforeMessage: waitForRoom,
    corked: ({ listener }, work) => {
      if (listener?.corked === undefined) work();
      else listener.corked(work);
    },
    handle: (data, message, isBinary) => {
      const { joined, listener, traffic, owner } = data;
      if (owner !== null) {
        owner.message({ isBinary, bytes: new Uint8Array(message) });
        return;
      }
      if (joined === null || listener?.isEnded !== false) return;
      const { participant } = joined;
      let utteranceId: string | undefined;
      let preparedId: string | undefined;
      let type: Command["type"] | undefined;
      try {
        traffic?.take(message.byteLength, options.clock.nowMs());
        const parsed = parseCommand(textOf(message, isBinary));
        const { ignored } = parsed;
        type = parsed.command.type;
        if (parsed.command.type === "refresh") {
          refreshWhenClaimed(data, parsed.command.token, options);
          return;
        }
        const command = allowed(data, parsed.command);
        utteranceId = "utterance_id" in command ? command.utterance_id : undefined;
        preparedId = command.type === "prepare" ? command.prepared_id : undefined;
        warnOfIgnored(participant, command.type, ignored);
        handleCommand(joined, command);
      } catch (thrown) {
        refuseCommand(data, thrown, { options, type, utteranceId, preparedId });
      }
    },
    refuse: ({ listener }, error) => {
      if (listener !== null) closeWith(listener, error);
    },
    closed: (data, code) => {
      const { joined } = data;
      if (joined !== null) lostClients.left(joined.participant);
      data.joined = null;
      data.lease?.close();
      data.audit?.close();
      reconnects.forget(data);
      data.owner?.closed(code);
      joined?.session.leave(joined.participant, { isFinal: isGoodBye(code) });
    },
  };
}

/** Where too much is on its way to its node, what the client says stays in its inbox: that has a bound of its own. */
function waitForRoom({ inbox, owner }: LiveConnection): void {
  if (inbox === null || owner?.isFull !== true) return;
  const goOn = inbox.hold();
  owner.whenRoom(() => goOn(() => undefined));
}

interface RefusedCommand {
  readonly options: LiveConnectionsOptions;
  readonly type: Command["type"] | undefined;
  readonly utteranceId?: string | undefined;
  readonly preparedId?: string | undefined;
}

/** Its client hears why; one that goes on with what is refused is closed. */
function refuseCommand(
  data: LiveConnection,
  thrown: unknown,
  { options, type, utteranceId, preparedId }: RefusedCommand,
): void {
  const { joined, listener, refusals, traffic } = data;
  if (joined === null || listener === null) return;
  const error = report(thrown, options.log);
  auditRefusal(data, thrown, { ...options, command: type });
  joined.participant.send((base) => ({
    type: "error",
    ...base,
    ...errorBody(error),
    ...(utteranceId === undefined ? {} : { utterance_id: utteranceId }),
    ...(preparedId === undefined ? {} : { prepared_id: preparedId }),
  }));
  if (traffic?.isFlooding(options.clock.nowMs())) {
    options.counters.connectionsFlooding += 1;
    closeWith(listener, error);
  } else if (refusals.note(options.clock.nowMs())) {
    options.counters.connectionsFlooding += 1;
    const tooMany = tooManyRefusals();
    options.counters.refusals.sent(tooMany);
    closeWith(listener, tooMany);
  }
}

/** For the audit log and the figures of what was refused, where it was for what the caller may do. */
function auditRefusal(
  data: LiveConnection,
  thrown: unknown,
  { door, command }: Pick<LiveConnectionsOptions, "door"> & { readonly command?: string | undefined },
): void {
  if (!isRefusal(thrown)) {
    door.audit.sent(thrown);
    return;
  }
  const { address, sessionId } = data;
  const caller = data.lease?.caller ?? data.caller;
  data.audit ??= new ConnectionAudit(door.audit);
  data.audit.refused({ thrown, surface: "/live/:session", command, address, caller, sessionId });
}

/** The command as it is carried out. Throws forbidden, token_expired. */
function allowed(data: LiveConnection, command: SessionCommand): SessionCommand {
  const { lease, sessionId, expiry, joined } = data;
  const caller = lease?.caller ?? data.caller;
  const isMore = command.type === "text" && joined !== null && goesOn(joined, command);
  const checked = checkCommand(caller, sessionId, command, { goesOn: isMore });
  // Whoever joined without sound, or without a call's events, may not have them by changing its settings.
  if (command.type === "configure" && joined !== null) {
    const { settings } = joined.participant;
    const { format = settings.format, events = settings.events } = command;
    checkSettings(caller, sessionId, { ...settings, format, events });
  }
  // What was begun is ended, and who listens goes on until the end.
  if (expiry !== null && takesText(command.type)) throw expiry;
  return checked;
}

function takesText(type: SessionCommand["type"]): boolean {
  return ["speak", "text", "dialogue", "play", "prepare", "resume"].includes(type);
}

/** At once, or where the new token is a single-use one and there are other nodes, once they know of it. */
function refreshWhenClaimed(data: LiveConnection, token: string, options: LiveConnectionsOptions): void {
  const { address, origin, inbox } = data;
  const claim = claimAt(address, { credential: token, place: "message", origin }, options.door);
  if (claim === null || inbox === null) {
    refresh(data, token, options);
    return;
  }
  const goOn = inbox.hold();
  const refused = (thrown: unknown): void => refuseCommand(data, thrown, { options, type: "refresh" });
  claim.then(
    (letGo) => {
      goOn(() => {
        try {
          refresh(data, token, options);
        } catch (thrown) {
          refused(thrown);
        }
      });
      letGo();
    },
    (thrown: unknown) => goOn(() => refused(thrown)),
  );
}

/** Goes on with another token. Throws what `identify` does, forbidden. */
function refresh(data: LiveConnection, token: string, { door }: LiveConnectionsOptions): void {
  const { joined, lease, origin, sessionId } = data;
  if (joined === null || lease === null || data.expiry !== null) {
    throw data.expiry ?? forbidden("There is nothing to refresh: no keys are set");
  }
  const next = identifyAt(data.address, { credential: token, place: "message", origin }, door);
  mustFollow(next, lease.caller);
  checkSettings(next, sessionId, joined.participant.settings);
  door.access.redeem(next);
  lease.refresh(next);
  door.audit.admitted(next, { surface: "refresh", address: data.address, sessionId });
  const expires_in_ms = lease.endsInMs;
  joined.participant.send((base) => ({ type: "refreshed", ...base, expires_in_ms }));
}

function warnOfBudget(participant: Participant, { name, spent, limit }: LowBudget): void {
  const message = `${name} has used ${spent} of its ${limit} characters: no text is taken once they are used up`;
  participant.send((base) => ({ type: "warning", ...base, code: "budget_low", message }));
}

function leaseHolder(data: LiveConnection, options: LiveConnectionsOptions): LeaseHolder {
  return {
    warn: (endsInMs) => {
      const message = "The token expires soon: send `refresh` with a new one";
      data.joined?.participant.send((base) => ({
        type: "warning",
        ...base,
        code: "token_expiring",
        message,
        expires_in_ms: Math.round(endsInMs),
      }));
    },
    expired: (error) => {
      data.expiry = error;
      if (data.joined !== null) endTexts(data.joined);
      endWhenSpoken(data, error, options.clock);
    },
    mustStay: (caller) => {
      if (data.joined !== null) checkSettings(caller, data.sessionId, data.joined.participant.settings);
    },
    revoked: (error) => {
      if (data.listener !== null) closeWith(data.listener, error);
    },
  };
}

/** Closes the connection as soon as nothing of its own is spoken any more. */
function endWhenSpoken(data: LiveConnection, error: GatewayError, clock: Clock): void {
  const { joined, listener } = data;
  if (joined === null || listener === null) return;
  if (!isSpeaking(joined)) {
    closeWith(listener, error);
    return;
  }
  clock.at(clock.nowMs() + LAST_WORDS_POLL_MS, () => endWhenSpoken(data, error, clock));
}

/** Once each, and not without end. */
function warnOfIgnored(participant: Participant, type: Command["type"], ignored: readonly string[]): void {
  const { warnedFields } = participant;
  const fresh = ignored
    .map((field) => field.slice(0, 64))
    .filter((field) => !warnedFields.has(field) && warnedFields.size < 64);
  for (const field of fresh) warnedFields.add(field);
  if (fresh.length === 0) return;
  const what = `Fields of ${type} that this gateway does not know: ${fresh.join(", ")}`;
  const message = what.slice(0, 500);
  participant.send((base) => ({ type: "warning", ...base, code: "ignored_field", message }));
}

/** A client that says good-bye does not come back; one whose connection broke, or that the gateway cut off, may. */
export function isGoodBye(code: number): boolean {
  return code !== ABNORMAL_CLOSURE && code < FIRST_OWN_CODE;
}

function tooManyRefusals(): GatewayError {
  return new GatewayError(
    "too_many_refusals",
    `Connection is closed: more than ${MAX_REFUSALS_A_SECOND} of its messages were refused in a second; wait for the answers, and for \`resumed\` after \`paused\``,
    { retryAfterMs: 1000 },
  );
}

function closeWith(listener: ClientListener, error: GatewayError): void {
  listener.notify(closingEvent(error));
  listener.end(error.closeCode, error.code);
}

/** The error as the client sees it; faults of our own are logged with their stack. */
function report(thrown: unknown, log: Logger): GatewayError {
  const error = toGatewayError(thrown);
  if (error.code === "internal") log.error({ err: error.cause ?? error }, "Fault while handling a message");
  return error;
}
