/**
 * One thing to say, as a state machine. The playback queue owns it and is the only one that calls its transitions:
 *
 *   queued --begin--> speaking --end--> rendered      all audio is on the timeline; over when the playhead has passed it
 *      |                  |  \--fail--> failed        what came is heard, no more comes
 *      |                  +--interrupt--> interrupted (from all the others, too)
 *      ^--rewind--- speaking, rendered                its audio was cut before it was heard
 *      ^--resume--- interrupted                       it goes on with its snapshot
 *      ^--continueFrom--- queued                      it goes on where another node left off
 */
import type { GatewayError } from "../../errors.ts";
import type {
  DialogueCommand,
  PlayCommand,
  QueueOptions,
  SpeakCommand,
  TextCommand,
  TextOptions,
} from "../../protocol/commands.ts";
import { isExpressiveModel } from "../../protocol/elevenlabs/models.ts";
import { defaultModelFor } from "../../protocol/upstream-voice.ts";
import type { Timing } from "../../protocol/vocabulary.ts";
import type { Segment } from "../../text/segmenter.ts";
import { SpokenText } from "../../text/spoken-text.ts";
import type { SpokenIn, Subject } from "../../upstream/types.ts";
import { type Generated, GeneratedAttempt } from "../generated-attempt.ts";
import type { ChargedUtterance } from "../payer.ts";
import type { PreparedText } from "../prepared/prepared-audio.ts";
import { preparedAttempt, type ReplayAttempt, soundAttempt } from "../resume/replay-attempt.ts";
import { RestartPlaces } from "../resume/restart-places.ts";
import type { Sound } from "../sound.ts";
import type { SpeechLevels } from "../speech-levels.ts";
import { newStages } from "../synthesis/segment-stages.ts";
import type { RequestTemplate } from "../synthesis/speech-request.ts";
import type { UtteranceTrace } from "../utterance-trace.ts";
import type { StagedSegment } from "./segment-queue.ts";
import { Transcript } from "./transcript.ts";
import { UtteranceText } from "./utterance-text.ts";

/** What need not be asked for. */
type OwnAttempt = ReplayAttempt | GeneratedAttempt;

/** A sound that is made, and in what format of samples. */
interface GeneratedIn {
  readonly format: string;
  readonly generated: Generated;
}

/** What was heard before it was interrupted, and where it went on last. */
export interface Resumption {
  /** Offset in the spoken text where it goes on; what is before was heard. */
  readonly spokenStart: number;
  /** How that place is known. */
  readonly timing: Timing;
  readonly heardTicks: number;
  /** Kept audio that is spoken first. */
  readonly replays: readonly OwnAttempt[];
  /** End of the spoken text that kept audio says. */
  readonly keptEnd: number;
}

/** What is kept of it when it is interrupted, so that `resume` can go on with it. */
export interface Snapshot {
  /** Audio that had come, in its order: it is spoken first. Empty: all is asked for again. */
  readonly replays: readonly OwnAttempt[];
  /** Offset in the spoken text where it goes on. */
  readonly spokenStart: number;
  /** Where on the former timeline it goes on. */
  readonly fromTicks: number;
  /** Text behind the replays that was asked for and did not come. */
  readonly rest: readonly Segment[];
  /** How that place in the text is known. */
  readonly timing: Timing;
}

interface AnyState {
  readonly transcript: Transcript;
  /** null: it was never interrupted. */
  readonly resumption: Resumption | null;
}

/** It has not begun, or waits to go on. */
interface Queued extends AnyState {
  readonly kind: "queued";
}

/** Its first audio is on the timeline. */
export interface Speaking extends AnyState {
  readonly kind: "speaking";
  readonly startTicks: number;
}

/** Its last audio is on the timeline; `startTicks` null: it had none. */
interface Rendered extends AnyState {
  readonly kind: "rendered";
  readonly startTicks: number | null;
  readonly endTicks: number;
  /** Silence that fills everybody's last frame. */
  readonly padTicks: number;
}

/** As `Rendered`, but no more comes of it. */
export interface Failed extends AnyState {
  readonly kind: "failed";
  readonly startTicks: number | null;
  readonly endTicks: number;
  readonly padTicks: number;
  readonly error: GatewayError;
  /** Text that was asked for and does not come. */
  readonly lost: readonly Segment[];
}

/** It was cut, or cancelled, and is not on the timeline any more; `startTicks`, `endTicks`: where it was. */
interface Interrupted extends AnyState {
  readonly kind: "interrupted";
  readonly startTicks: number | null;
  readonly endTicks: number | null;
  /** null: it can't go on. */
  readonly snapshot: Snapshot | null;
  readonly hasFailed: boolean;
}

type UtteranceState = Queued | Speaking | Rendered | Failed | Interrupted;

/** Where its audio has ended. */
export interface AudioEnd {
  readonly endTicks: number;
  readonly padTicks: number;
}

export interface UtteranceOptions {
  readonly id: string;
  readonly acceptedMs: number;
  /** How the text is made ready, where the command does not say. */
  readonly textDefaults: TextOptions;
  /** The model where the command names none; default: the upstream's own. */
  readonly defaultModel?: string;
  /** Voices whose models are not only the first upstream's. */
  readonly ownVoices?: ReadonlySet<string> | undefined;
  readonly charged?: ChargedUtterance | undefined;
  /** Default: none. */
  readonly session?: Pick<Required<SpokenIn>, "epoch"> & { readonly id: string };
  /** For whom the upstream is asked. */
  readonly subject?: Subject | undefined;
  /** Who began it: see Participant. Default: nobody in particular. */
  readonly holder?: string;
  /** Its times are asked for though nobody here wants them yet. */
  readonly isTimed?: boolean;
  /** It is over, or was cut, and is not heard again. Called once or more. */
  readonly onOver?: () => void;
  /** Default: it is not traced. */
  readonly trace?: UtteranceTrace | undefined;
}

export class Utterance {
  readonly id: string;
  readonly template: RequestTemplate;
  readonly acceptedMs: number;
  readonly priority: number;
  readonly subject: Subject | undefined;
  /** Who began it, and may add to its text. */
  readonly holder: string;
  readonly isTimed: boolean;
  readonly trace: UtteranceTrace | undefined;
  /** Its model acts on `[laughs]` and does not say it. */
  readonly isExpressive: boolean;
  /** Its text, as far as it has come. */
  readonly input: UtteranceText;
  readonly charged: ChargedUtterance | undefined;
  readonly #onOver: (() => void) | undefined;
  readonly restartPlaces = new RestartPlaces(this);
  /** null: it stays as loud as it comes, or nothing was asked for yet. */
  levels: SpeechLevels | null = null;
  #state: UtteranceState = { kind: "queued", transcript: new Transcript(), resumption: null };
  /** What it has to say that need not be asked for: a sound. */
  readonly #own: OwnAttempt[] = [];
  /** Kept audio that was not asked for yet. */
  #replays: OwnAttempt[] = [];
  /** Identifies the utterance for its requests, which need nothing else of it. */
  readonly identity: SpokenIn;
  #charactersBilled: number | null = null;
  #sourceFormat = "";
  #voiceIds: readonly string[];
  #requestIds: readonly string[] = [];
  /** What of it was counted as heard. */
  #counted = { characters: 0, ticks: 0 };

  private constructor(
    options: UtteranceOptions,
    template: RequestTemplate,
    { own, input }: { readonly own: OwnOptions; readonly input: (spoken: SpokenText) => UtteranceText },
  ) {
    this.id = options.id;
    this.identity = {
      session: options.session?.id ?? "",
      epoch: options.session?.epoch ?? "",
      id: options.id,
    };
    this.charged = options.charged;
    this.#onOver = options.onOver;
    this.template = template;
    this.acceptedMs = options.acceptedMs;
    this.subject = options.subject;
    this.holder = options.holder ?? "";
    this.isTimed = options.isTimed ?? false;
    this.trace = options.trace;
    this.priority = own.priority ?? 0;
    const { textDefaults } = options;
    const isDialogue = template.kind === "dialogue";
    const voiceId = template.kind === "dialogue" ? undefined : template.options.voice_id;
    const { defaultModel = "", ownVoices } = options;
    const modelId = own.model_id ?? defaultModelFor(voiceId, defaultModel, ownVoices);
    this.isExpressive = isDialogue || isExpressiveModel(modelId);
    this.input = input(
      new SpokenText(
        isDialogue
          ? {}
          : {
              clean: own.clean ?? textDefaults.clean ?? [],
              replacements: own.replacements ?? textDefaults.replacements ?? [],
              dropsAudioTags: !this.isExpressive,
            },
      ),
    );
    this.#voiceIds =
      template.kind === "dialogue"
        ? [...new Set(template.command.inputs.map((input) => input.voice_id))]
        : template.kind === "sound"
          ? []
          : [template.options.voice_id ?? ""];
  }

  /** A whole text. */
  static ofText(options: UtteranceOptions, command: SpeakCommand): Utterance {
    const template: RequestTemplate = { kind: "text", options: command };
    const input = (spoken: SpokenText): UtteranceText =>
      UtteranceText.whole(spoken, command.text, options.acceptedMs);
    return new Utterance(options, template, { own: command, input });
  }

  /** Text that comes in tokens. */
  static ofTokens(options: UtteranceOptions, command: TextCommand): Utterance {
    const template: RequestTemplate = { kind: "tokens", options: command };
    const input = (spoken: SpokenText): UtteranceText => UtteranceText.tokens(spoken, options.acceptedMs);
    return new Utterance(options, template, { own: command, input });
  }

  static ofDialogue(options: UtteranceOptions, command: DialogueCommand): Utterance {
    const text = command.inputs.map((input) => input.text).join("");
    const input = (spoken: SpokenText): UtteranceText =>
      UtteranceText.dialogue(spoken, text, options.acceptedMs);
    return new Utterance(options, { kind: "dialogue", command }, { own: command, input });
  }

  /** Without text. It is played as it is. */
  static ofSound(options: UtteranceOptions, command: PlayCommand, sound: Sound | GeneratedIn): Utterance {
    const queue = queueOptionsOf(command);
    const input = (spoken: SpokenText): UtteranceText => UtteranceText.whole(spoken, "", options.acceptedMs);
    const utterance = new Utterance(options, { kind: "sound", options: queue }, { own: queue, input });
    utterance.chooseSourceFormat(sound.format);
    const stages = newStages(
      { start: 0, end: 0 },
      { arrivedMs: options.acceptedMs, segmentedMs: options.acceptedMs },
    );
    const segment = { text: "", start: 0, end: 0, stages };
    utterance.#own.push(
      "audio" in sound
        ? soundAttempt(segment, sound.format, sound.audio)
        : new GeneratedAttempt(segment, sound.format, sound.generated),
    );
    utterance.#replays = [...utterance.#own];
    return utterance;
  }

  /** A text that was synthesized ahead. */
  static ofPrepared(
    options: UtteranceOptions,
    play: PlayCommand,
    { command, audio }: PreparedText,
  ): Utterance {
    const utterance = Utterance.ofText(options, { ...command, ...queueOptionsOf(play) });
    utterance.chooseSourceFormat(audio.sourceFormat);
    utterance.noteBilled(0);
    for (const prepared of audio.segments) {
      const segment = utterance.takeSegment();
      if (segment !== undefined) utterance.#own.push(preparedAttempt(segment, audio.sourceFormat, prepared));
    }
    utterance.#replays = [...utterance.#own];
    return utterance;
  }

  // ---- what it is ------------------------------------------------------------------------------------------------

  get state(): UtteranceState {
    return this.#state;
  }
  /** Everything the client sent for it, and what is spoken for that. */
  get text(): string {
    return this.input.client;
  }
  get spoken(): SpokenText {
    return this.input.spoken;
  }
  get transcript(): Transcript {
    return this.#state.transcript;
  }
  get resumption(): Resumption | null {
    return this.#state.resumption;
  }
  /** Where on the timeline it begins; null before its first audio. */
  get startTicks(): number | null {
    return this.#state.kind === "queued" ? null : this.#state.startTicks;
  }
  /** Where its last audio ends; null before that. */
  get endTicks(): number | null {
    const state = this.#state;
    return state.kind === "queued" || state.kind === "speaking" ? null : state.endTicks;
  }
  get padTicks(): number {
    const state = this.#state;
    return state.kind === "rendered" || state.kind === "failed" ? state.padTicks : 0;
  }
  /** It has no text, and is played as it is. */
  get isSound(): boolean {
    return this.template.kind === "sound";
  }
  /** No more audio of it is to be rendered: it waits for the playhead. */
  get isSettled(): boolean {
    return this.#state.kind === "rendered" || this.#state.kind === "failed";
  }
  get hasFailed(): boolean {
    return this.#state.kind === "failed" || (this.#state.kind === "interrupted" && this.#state.hasFailed);
  }

  /** Something can be spoken. */
  get hasSegment(): boolean {
    return !this.input.segments.isEmpty || this.#replays.length > 0;
  }
  /** All its segments have been taken and none will come. */
  get isExhausted(): boolean {
    return this.input.isEnded && this.input.segments.isEmpty && this.#replays.length === 0;
  }
  /** Kept audio that was not taken yet. */
  get replays(): readonly OwnAttempt[] {
    return this.#replays;
  }
  takeReplay(): OwnAttempt | undefined {
    return this.#replays.shift();
  }
  takeSegment(): StagedSegment | undefined {
    return this.input.take();
  }

  // ---- what its requests say -------------------------------------------------------------------------------------

  /** What all requests made for it cost, those that were aborted and made again among them; null: the upstream has said no cost. */
  get charactersBilled(): number | null {
    return this.#charactersBilled;
  }
  noteBilled(characters: number): void {
    this.#charactersBilled = (this.#charactersBilled ?? 0) + characters;
  }

  /** `request-id`s of the segments that the upstream has finished, for stitching. */
  get requestIds(): readonly string[] {
    return this.#requestIds;
  }
  noteRequest(requestId: string): void {
    this.#requestIds = [...this.#requestIds.slice(-2), requestId];
  }

  /** What is asked of the upstream; "" until the first request. */
  get sourceFormat(): string {
    return this.#sourceFormat;
  }
  /** Once for all its requests. */
  chooseSourceFormat(format: string): void {
    this.#sourceFormat = format;
  }

  get voiceIds(): readonly string[] {
    return this.#voiceIds;
  }

  /** As the client named it; null: it did not. */
  get languageCode(): string | null {
    const { template } = this;
    const { language_code } = template.kind === "dialogue" ? template.command : template.options;
    return language_code ?? null;
  }
  /** Whether the client named the voice itself. */
  get namesVoice(): boolean {
    const { template } = this;
    return template.kind === "dialogue" || this.isSound || template.options.voice_id !== undefined;
  }
  /** The voice, where the client named none. */
  useVoice(voiceId: string): void {
    if (!this.namesVoice) this.#voiceIds = [voiceId];
  }

  get modelId(): string | undefined {
    return this.template.kind === "dialogue"
      ? this.template.command.model_id
      : this.template.options.model_id;
  }

  /** How loud the client wants it, LUFS; 0: as it comes; undefined: it does not say. */
  get loudnessLufs(): number | undefined {
    return this.template.kind === "dialogue"
      ? this.template.command.loudness_lufs
      : this.template.options.loudness_lufs;
  }

  /** What follows a segment, as far as it is known: for the upstream's intonation. */
  textBehind(segment: Segment): string {
    return this.spoken.spoken.slice(segment.end);
  }

  /**
   * Offsets in `text` where a word must not go on: the joints of a dialogue's inputs. They are those of the spoken text, too, since
   * a dialogue's text is neither cleaned nor replaced.
   */
  get joints(): number[] {
    if (this.template.kind !== "dialogue") return [];
    let offset = 0;
    return this.template.command.inputs.map((input) => {
      offset += input.text.length;
      return offset;
    });
  }

  /** How many inputs of a dialogue were said whole where it goes on at this offset of the spoken text. */
  inputsBefore(spokenStart: number): number {
    // At the beginning none was, though the first one be empty.
    return spokenStart === 0 ? 0 : this.joints.filter((at) => at <= spokenStart).length;
  }

  /**
   * How much more was heard of it than was counted before: one that is cut and goes on, or that is cut for a late player
   * behind its end, is over twice. `end`: client's offset up to which its text was heard.
   */
  takeNewlyHeard(end: number, atTicks: number): { readonly characters: number; readonly ticks: number } {
    const { startTicks, resumption } = this;
    const before = this.#counted;
    const ticks = (resumption?.heardTicks ?? 0) + Math.max(0, atTicks - (startTicks ?? atTicks));
    this.#counted = {
      characters: Math.max(before.characters, end),
      ticks: Math.max(before.ticks, ticks),
    };
    return {
      characters: this.#counted.characters - before.characters,
      ticks: this.#counted.ticks - before.ticks,
    };
  }

  // ---- transitions: the playback queue's alone -------------------------------------------------------------------

  /** Its first audio stands there. */
  begin(startTicks: number): void {
    const { transcript, resumption } = this.#state;
    this.#state = { kind: "speaking", startTicks, transcript, resumption };
  }

  /** Its last audio is rendered. No more text comes. */
  end({ endTicks, padTicks }: AudioEnd): void {
    const { startTicks } = this;
    const { transcript, resumption } = this.#state;
    this.#state = { kind: "rendered", startTicks, endTicks, padTicks, transcript, resumption };
  }

  /** As `end`, because a request for it has failed. `lost`: text of which no more comes. */
  fail({ endTicks, padTicks }: AudioEnd, why: Pick<Failed, "error" | "lost">): void {
    const { startTicks } = this;
    const { transcript, resumption } = this.#state;
    this.#state = { kind: "failed", startTicks, endTicks, padTicks, transcript, resumption, ...why };
  }

  /** It was cut, or taken out of the queue; also when its snapshot has expired. */
  interrupt(snapshot: Snapshot | null): void {
    const { startTicks, endTicks, hasFailed } = this;
    const { transcript, resumption } = this.#state;
    this.#state = { kind: "interrupted", startTicks, endTicks, transcript, resumption, snapshot, hasFailed };
    this.charged?.end();
    this.#onOver?.();
  }

  /** The playhead has passed its end, or its session has ended. */
  leaveQueue(): void {
    this.charged?.end();
    this.#onOver?.();
  }

  /** What was made of it was not heard: it is said again from the beginning, or from where it went on. */
  rewind(nowMs: number): void {
    const { resumption, transcript } = this.#state;
    // A sound of its own is not asked for.
    if (resumption !== null || this.#own.length === 0) this.input.segments.rewind(nowMs);
    this.#replays = (resumption?.replays ?? this.#own).map((replay) => replay.again());
    // They may be of text that is now to come.
    this.#requestIds = [];
    const timing = resumption === null ? "none" : transcript.timing;
    this.#state = { kind: "queued", transcript: new Transcript(timing), resumption };
  }

  /** Another node has spoken it up to `spokenStart`: it goes on from there. `restOf`: what is left of a segment. */
  continueFrom(
    heard: Pick<Resumption, "spokenStart" | "heardTicks">,
    restOf: (segment: Segment) => Segment | null,
    nowMs: number,
  ): void {
    this.input.skipTo(heard.spokenStart, restOf, nowMs);
    const resumption: Resumption = { ...heard, timing: "exact", replays: [], keptEnd: 0 };
    this.#counted = { characters: this.spoken.clientEnd(heard.spokenStart), ticks: heard.heardTicks };
    this.#state = { kind: "queued", transcript: new Transcript(), resumption };
  }

  /** It goes on with what was kept when it was cut. */
  resume({ rest, replays, spokenStart, timing, fromTicks }: Snapshot, nowMs: number): void {
    const { resumption, transcript } = this.#state;
    const newlyHeardTicks = Math.max(0, fromTicks - (this.startTicks ?? fromTicks));
    this.input.goOn(rest, nowMs);
    this.trace?.resume(nowMs);
    this.#replays = [...replays];
    this.#state = {
      kind: "queued",
      transcript: new Transcript(transcript.timing),
      resumption: {
        spokenStart,
        timing,
        replays,
        heardTicks: (resumption?.heardTicks ?? 0) + newlyHeardTicks,
        keptEnd: replays.at(-1)?.segment.end ?? 0,
      },
    };
  }
}

function queueOptionsOf({ priority, replace }: PlayCommand): QueueOptions {
  return { ...(priority !== undefined && { priority }), ...(replace !== undefined && { replace }) };
}

type OwnOptions = TextOptions & { readonly priority?: number; readonly model_id?: string };
