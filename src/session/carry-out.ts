/** What each client command does to a session; one function a command, all errors thrown as GatewayErrors. */
import { GatewayError } from "../errors.ts";
import type {
  Command,
  ConfigureCommand,
  DialogueCommand,
  PlayCommand,
  PlayedCommand,
  PrepareCommand,
  RefreshCommand,
  SpeakCommand,
  TextCommand,
} from "../protocol/commands.ts";
import { findBadText } from "../text/check.ts";
import { beginsWithHalf, divideHalf } from "../text/code-points.ts";
import type { Participant } from "./connections/participant.ts";
import { voiceFor } from "./language-voices.ts";
import { reconfigure } from "./listener-settings.ts";
import type { Payer } from "./payer.ts";
import { Utterance, type UtteranceOptions } from "./playback/utterance.ts";
import { prepareSound, prepareSpeech } from "./prepared/prepare.ts";
import type { Session } from "./session.ts";
import { generatedFormat, generatedOf, roomFor, soundOf } from "./sound.ts";
import { entering } from "./tape/tape.ts";
import { tapedPayer } from "./tape/taped-payer.ts";
import { newPart, receivedIn } from "./text-input/text-place.ts";
import { leaveHalfOut, warnOfEnd, warnOfMarkup } from "./text-input/text-warnings.ts";
import { playUnder } from "./under/play-under.ts";
import { traceOf } from "./utterance-trace.ts";

/** All but what the door answers. */
export type SessionCommand = Exclude<Command, RefreshCommand>;

/** A connection, and the session that it is in. */
export interface Connection extends Payer {
  readonly session: Session;
  readonly participant: Participant;
}

interface TextEnd {
  readonly type: "flush" | "end";
  readonly utterance_id?: string;
}

/** What an utterance costs, and who pays. */
interface Charge {
  readonly characters: number;
  readonly payer: Payer;
}

/** Carries out a command of a connection. Throws; the caller answers with the error. */
export function handleCommand(from: Connection, command: SessionCommand): void {
  const { tape } = from.session.deps;
  if (tape === undefined) carryOut(from, command);
  else {
    const taped = { ...from, ...tapedPayer(from, tape) };
    tape.enter("command", [from.participant.id, command], () => carryOut(taped, command));
  }
  // What is played and asked for changes nothing that another node would need.
  if (command.type !== "ping" && command.type !== "played") from.session.connectionChanged(from.participant);
}

function carryOut(from: Connection, command: SessionCommand): void {
  const { session, participant } = from;
  switch (command.type) {
    case "speak":
    case "dialogue": {
      participant.mustSpeak();
      const { utterance, ahead } =
        command.type === "speak"
          ? queueText(session, { ...participant.textOptions, ...command }, from)
          : converse(session, command, from);
      reportQueued(participant, utterance, ahead);
      warnOfMarkup(participant, utterance);
      session.textChanged();
      return;
    }
    case "play": {
      participant.mustSpeak();
      if (command.under === true) {
        reportQueued(participant, { id: playUnder(session, command) }, 0);
        session.textChanged();
        return;
      }
      const { utterance, ahead } = play(session, command, from);
      reportQueued(participant, utterance, ahead);
      session.textChanged();
      return;
    }
    case "prepare":
      participant.mustSpeak();
      prepare(from, command);
      return;
    case "text":
      participant.mustSpeak();
      addText(from, command);
      return;
    case "flush":
    case "end":
      participant.mustSpeak();
      closeText(from, command);
      return;
    case "interrupt":
      participant.mustInterrupt();
      session.interruptions.interrupt(command.utterance_id, command.keep_ms);
      return;
    case "stop":
      participant.mustSpeak();
      session.utteranceCommands.stop(command.utterance_id, command.fade_ms);
      return;
    case "cancel":
      participant.mustInterrupt();
      session.utteranceCommands.cancel(command.utterance_id);
      return;
    case "resume":
      participant.mustSpeak();
      session.utteranceCommands.resume(command.utterance_id);
      return;
    case "mark":
      participant.mustSpeak();
      session.mark(command.name);
      return;
    case "played":
      acknowledge(from, command);
      return;
    case "configure":
      configure(from, command);
      return;
    case "ping":
      participant.send((base) => ({
        type: "pong",
        ...base,
        ...(command.id === undefined ? {} : { id: command.id }),
      }));
      return;
    case "hangup":
      participant.mustSpeak();
      hangUp(session, command.call_id);
      return;
    case "close":
      participant.hasSaidGoodbye = true;
      participant.end(new GatewayError("session_closed", "Connection closed as asked"));
      return;
  }
}

function reportQueued(participant: Participant, { id }: Pick<Utterance, "id">, ahead: number): void {
  participant.saidIds.add(id);
  participant.send((base) => ({ type: "utterance.queued", ...base, utterance_id: id, ahead }));
}

function hangUp(session: Session, callId: string | undefined): void {
  const hang = (): void => {
    if (session.calls === null) throw new GatewayError("unknown_call", "Nothing to hang up: no call is here");
    session.calls.hangUp(callId);
  };
  const { tape } = session.deps;
  if (tape === undefined) hang();
  else tape.tell("hangup", [callId ?? null], hang);
}

/** Whether the text belongs to one that has come in part, whose voice and model are known. Throws as handling it does. */
export function goesOn(from: Connection, command: TextCommand): boolean {
  return findOpen(from, command) !== null;
}

/** Ends the texts that the connection has left open: what came of them is said. */
export function endTexts({ session, participant }: Connection): void {
  entering(session.deps.tape, { name: "endTexts", says: () => [participant.id] }, () => {
    for (const id of [...participant.openIds]) {
      const open = session.queue.find(id);
      if (open !== undefined && !open.input.isEnded) endText({ session, participant }, open);
    }
  });
}

/** Whether something that the connection said is not spoken to its end. */
export function isSpeaking({ session, participant }: Connection): boolean {
  for (const id of participant.saidIds) {
    if (session.queue.find(id) === undefined) participant.saidIds.delete(id);
  }
  return participant.saidIds.size > 0;
}

/** Queues a whole text; also what POST /live/{session}/speak does. */
export function speak(
  session: Session,
  command: SpeakCommand,
  payer: Payer = {},
): { utterance: Utterance; ahead: number } {
  const { tape } = session.deps;
  if (tape === undefined) return queueText(session, command, payer);
  return tape.enter("speak", [command], () => queueText(session, command, tapedPayer(payer, tape)));
}

function queueText(
  session: Session,
  command: SpeakCommand,
  payer: Payer,
): { utterance: Utterance; ahead: number } {
  mustBeText(command.text, session.settings.maxTextChars);
  const charge = { characters: command.text.length, payer };
  const utterance = Utterance.ofText(admit(session, command, charge), voiced(session, command));
  return { utterance, ahead: session.queue.add(utterance) };
}

function converse(
  session: Session,
  command: DialogueCommand,
  payer: Payer = {},
): { utterance: Utterance; ahead: number } {
  const { maxDialogueInputs, maxTextChars } = session.settings;
  if (command.inputs.length > maxDialogueInputs) {
    throw new GatewayError(
      "invalid_field",
      `Dialogue has ${command.inputs.length} inputs, expected at most ${maxDialogueInputs}`,
      { field: "inputs" },
    );
  }
  let left = maxTextChars;
  command.inputs.forEach((input, index) => {
    checkText(input.text, { field: `inputs.${index}.text`, max: left });
    left -= input.text.length;
  });
  const charge = { characters: maxTextChars - left, payer };
  const utterance = Utterance.ofDialogue(admit(session, command, charge), command);
  return { utterance, ahead: session.queue.add(utterance) };
}

/** With the voice of its language, where it names none and there is one. */
function voiced<C extends SpeakCommand | TextCommand>(session: Session, command: C): C {
  if (command.voice_id !== undefined) return command;
  const voice = voiceFor(session.settings.languageVoices, command.language_code);
  return voice === undefined ? command : { ...command, voice_id: voice };
}

function prepare(from: Connection, command: PrepareCommand): void {
  const { text, audio, format: _format, prepared_id, type: _type, ...options } = command;
  if (audio !== undefined || text === undefined) {
    prepareSound(from, command);
    return;
  }
  mustBeText(text, from.session.settings.maxTextChars);
  const { textOptions } = from.participant;
  const said: SpeakCommand = { ...textOptions, ...options, type: "speak", text };
  prepareSpeech(from, prepared_id, voiced(from.session, said));
}

/** Queues a sound, or what was prepared. */
function play(session: Session, command: PlayCommand, payer: Payer): { utterance: Utterance; ahead: number } {
  const { prepared_id, sound } = command;
  if (prepared_id !== undefined) return playPrepared(session, { ...command, prepared_id }, payer);
  if (sound === undefined) return playSound(session, command, payer);
  const options = admit(session, command, { characters: 0, payer });
  const made = { format: generatedFormat(session.renditionsInUse()), generated: generatedOf(sound) };
  const utterance = Utterance.ofSound(options, command, made);
  return { utterance, ahead: session.queue.add(utterance) };
}

/** Queues what was prepared. */
function playPrepared(
  session: Session,
  command: PlayCommand & { readonly prepared_id: string },
  payer: Payer,
): { utterance: Utterance; ahead: number } {
  const { what, done } = session.prepared.use(command.prepared_id);
  try {
    const options = { ...admit(session, command, { characters: 0, payer }), onOver: done };
    const utterance =
      "sound" in what
        ? Utterance.ofSound(options, command, what.sound)
        : Utterance.ofPrepared(options, command, what);
    return { utterance, ahead: session.queue.add(utterance) };
  } catch (thrown) {
    done();
    throw thrown;
  }
}

/** Queues a sound. */
function playSound(
  session: Session,
  command: PlayCommand,
  payer: Payer,
): { utterance: Utterance; ahead: number } {
  const sound = soundOf({ ...command, audio: command.audio ?? "" });
  const release = roomFor(sound.audio.length, session.deps.sounds);
  try {
    const options = admit(session, command, { characters: 0, payer });
    const utterance = Utterance.ofSound({ ...options, onOver: release }, command, sound);
    return { utterance, ahead: session.queue.add(utterance) };
  } catch (thrown) {
    release();
    throw thrown;
  }
}

/**
 * Room in the queue for an utterance: what it replaces goes first, unless it can't be paid for. Throws utterance_id_taken, queue_full,
 * draining, and what its budget throws.
 */
function admit(
  session: Session,
  command: SpeakCommand | TextCommand | DialogueCommand | PlayCommand,
  { payer: { budget, subject }, characters }: Charge,
): UtteranceOptions {
  if (command.utterance_id !== undefined) session.utteranceCommands.mustBeFree(command.utterance_id);
  const charged = budget?.begin(characters);
  try {
    if (command.replace !== undefined) session.utteranceCommands.replace(command.replace);
    const id = session.utteranceCommands.admit(command.utterance_id);
    session.deps.counters.characters.requested += characters;
    return {
      id,
      session,
      acceptedMs: session.nowMs(),
      textDefaults: session.settings.textDefaults,
      defaultModel: session.settings.model,
      ownVoices: session.settings.ownVoices,
      subject,
      charged,
      trace: traceOf(session.deps, {
        sessionId: session.id,
        utteranceId: id,
        traceparent: command.traceparent,
      }),
    };
  } catch (thrown) {
    charged?.undo();
    throw thrown;
  }
}

function addText(from: Connection, command: TextCommand): void {
  const open = findOpen(from, command);
  const text = newTextOf(from, command, open);
  if (open === null) beginText(from, { ...command, text });
  else if (text !== "" || command.text === "") goOnWith(from, open, text);
  // It came before, and this connection goes on with it.
  else if (!open.input.isEnded) from.session.speakers.noteSpeaker(from.participant, open);
}

/** What has not come before of a token that says where it begins. Throws text_missing. */
function newTextOf(
  { participant }: Connection,
  { text, offset }: TextCommand,
  open: Utterance | null,
): string {
  if (offset === undefined) return text;
  const unit = participant.settings.offsets;
  const rest = newPart({ text, offset }, unit, open?.input);
  if (rest !== null) return rest;
  const received = open === null ? 0 : receivedIn(unit, open.input);
  throw new GatewayError(
    "text_missing",
    `Text before offset ${offset} has not come: expected an offset of ${received} at most`,
    { field: "offset" },
  );
}

function goOnWith(from: Connection, open: Utterance, text: string): void {
  const { session, participant } = from;
  const isJoined = text === "" || beginsWithHalf(text);
  // A token stream may be divided between the halves of a pair: the first one waits for the second.
  const { whole, half } = divideHalf(`${isJoined ? open.input.half : ""}${text}`);
  checkText(whole, { field: "text", max: session.settings.maxTextChars - open.text.length });
  from.budget?.add(text.length, open.charged);
  if (!isJoined) leaveHalfOut(participant, open);
  open.input.holdHalf(half);
  session.deps.counters.characters.requested += text.length;
  open.input.append(whole, session.nowMs());
  session.speakers.noteSpeaker(participant, open);
  session.textChanged();
  session.speakers.noteText(participant, open);
}

function beginText(from: Connection, command: TextCommand): void {
  const { session, participant } = from;
  const { whole, half } = divideHalf(command.text);
  checkText(whole, { field: "text", max: session.settings.maxTextChars });
  const charge = { characters: command.text.length, payer: from };
  const options = admit(session, command, charge);
  const { holder, textOptions } = participant;
  const utterance = Utterance.ofTokens(
    { ...options, holder },
    voiced(session, { ...textOptions, ...command }),
  );
  utterance.input.append(whole, session.nowMs());
  utterance.input.holdHalf(half);
  for (const id of participant.openIds)
    if (session.queue.findAny(id) === undefined) participant.openIds.delete(id);
  participant.openIds.add(utterance.id);
  participant.currentId = utterance.id;
  const ahead = session.queue.add(utterance);
  reportQueued(participant, utterance, ahead);
  session.textChanged();
  session.speakers.noteText(participant, utterance);
}

/**
 * The utterance that text goes on; null when the text begins a new one. Also one whose text has ended, for a token that came
 * before. Throws text_after_end, utterance_over, forbidden.
 */
function findOpen({ session, participant }: Connection, command: TextCommand | TextEnd): Utterance | null {
  const id = command.utterance_id;
  if (id === undefined) {
    const own = participant.currentId === null ? undefined : session.queue.find(participant.currentId);
    return own === undefined || own.input.isEnded ? null : own;
  }
  const named = session.queue.findAny(id);
  if (named?.hasFailed || session.utteranceCommands.isOver(id)) {
    throw new GatewayError(
      "utterance_over",
      `Utterance ${id} is over: its text is dropped, expected a new utterance_id`,
      { field: "utterance_id" },
    );
  }
  if (named === undefined) return null;
  participant.mustGoOnWith(named);
  if (named.input.isEnded && !hasCome(command, participant, named)) {
    throw new GatewayError(
      "text_after_end",
      `Text for utterance ${id} has ended: expected a new utterance_id`,
      {
        field: "utterance_id",
      },
    );
  }
  return named;
}

/** Whether all of a token came before: the client could not know that. */
function hasCome(command: TextCommand | TextEnd, { settings }: Participant, { input }: Utterance): boolean {
  if (command.type !== "text" || command.offset === undefined || command.text === "") return false;
  return newPart({ text: command.text, offset: command.offset }, settings.offsets, input) === "";
}

function closeText(from: Connection, command: TextEnd): void {
  const { session } = from;
  const open = findOpen(from, command);
  if (open === null) {
    const which =
      command.utterance_id === undefined ? "no text is open" : `no text is open for ${command.utterance_id}`;
    throw new GatewayError("unknown_utterance", `Nothing to ${command.type}: ${which}`, {
      field: "utterance_id",
    });
  }
  if (command.type === "end") endText(from, open);
  else {
    open.input.flush(session.nowMs());
    session.textChanged();
  }
}

function endText({ session, participant }: Connection, open: Utterance): void {
  open.input.end(session.nowMs());
  warnOfEnd(participant, open);
  participant.openIds.delete(open.id);
  if (participant.currentId === open.id) participant.currentId = null;
  session.textChanged();
}

function acknowledge({ session, participant }: Connection, command: PlayedCommand): void {
  const latestSeq = participant.sentSeq;
  if (command.seq !== undefined && command.seq > latestSeq) {
    throw new GatewayError(
      "invalid_field",
      `Field seq of played is ${command.seq}, which was not sent yet: expected at most ${latestSeq}`,
      { field: "seq" },
    );
  }
  if (command.mark !== undefined) {
    const markMs = session.markMs(command.mark);
    if (markMs === undefined) {
      throw new GatewayError("invalid_field", "Field mark of played names no mark that was echoed lately", {
        field: "mark",
      });
    }
    participant.acknowledge(markMs, "mark");
    return;
  }
  const atMs = command.at_ms ?? 0;
  const latestMs = session.sentMsOf(participant);
  if (atMs > latestMs) {
    throw new GatewayError(
      "invalid_field",
      `Field at_ms of played is ${atMs}, which was not sent yet: expected at most ${latestMs}`,
      { field: "at_ms" },
    );
  }
  participant.acknowledge(atMs);
}

function configure({ session, participant }: Connection, command: ConfigureCommand): void {
  const { clean, replacements, ...change } = command;
  if (clean !== undefined || replacements !== undefined) {
    participant.textOptions = {
      ...participant.textOptions,
      ...(clean === undefined ? {} : { clean }),
      ...(replacements === undefined ? {} : { replacements }),
    };
  }
  const settings = reconfigure(participant.settings, change, session.settings);
  // Text options alone are no reason to take a listener from its place.
  if (Object.keys(change).length > 1) session.resubscribe(participant, settings);
  const audio = participant.describeAudio();
  participant.send((base) => ({ type: "configured", ...base, settings, audio, ignored: [] }));
  session.drained(participant);
}

/** Throws text_too_long, invalid_text, invalid_field. */
function mustBeText(text: string, max: number): void {
  checkText(text, { field: "text", max });
  if (text.trim() !== "") return;
  throw new GatewayError("invalid_field", "Field text is empty, expected something to say", {
    field: "text",
  });
}

/** Throws text_too_long, invalid_text. */
function checkText(text: string, limit: { field: string; max: number }): void {
  if (text.length > limit.max) {
    throw new GatewayError(
      "text_too_long",
      `Text is too long: ${text.length} characters, expected at most ${Math.max(0, limit.max)} more for this utterance`,
      { field: limit.field },
    );
  }
  const bad = findBadText(text);
  if (bad !== null) {
    const what = bad.reason === "lone_surrogate" ? "half a surrogate pair" : "a control character";
    throw new GatewayError(
      "invalid_text",
      `Text has ${what} at index ${bad.index}: expected whole characters`,
      {
        field: limit.field,
      },
    );
  }
}
