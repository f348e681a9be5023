/**
 * One thing to say: its text as the client sent it, the segments cut from it, and what was said of it so far.
 *
 *   queued --first audio--> speaking --all audio pushed--> pushed --playhead passes its end--> gone (done)
 *      \______________________\______________________________\-- interrupt, failure --> gone (until resumed)
 */
import type { DialogueCommand, SpeakCommand, TextCommand, TextOptions } from "../../protocol/commands.ts";
import { isExpressiveModel } from "../../protocol/elevenlabs/models.ts";
import type { Timing } from "../../protocol/vocabulary.ts";
import { TagBalance } from "../../text/balance.ts";
import { isBlank } from "../../text/characters.ts";
import { type Segment, Segmenter, type SegmenterOptions } from "../../text/segmenter.ts";
import { SpokenText } from "../../text/spoken-text.ts";
import { TokenPace } from "../../text/token-pace.ts";
import type { CueTracks } from "../captions/cue-tracks.ts";
import type { SegmentSpan } from "../heard-share.ts";
import type { ReplayAttempt } from "../resume/replay-attempt.ts";
import type { Snapshot } from "../resume/snapshot.ts";
import type { RequestTemplate } from "../synthesis/speech-request.ts";
import { HEARD_TOGETHER, isHeard, unheard } from "./heard-stretches.ts";
import { SegmentQueue, type TimedSegment } from "./segment-queue.ts";

/**
 * Longest piece of a whole text, UTF-16 units: texts up to here are one request, so that the upstream hears all of them
 * at once; longer ones are cut at sentence ends, so that an interruption does not pay for what is far ahead.
 */
const WHOLE_MAX_CHARS = 800;
/** A stretch of the timeline; it may be moved until its audio is pushed. */
export interface Span {
  startTicks: number;
  endTicks: number;
}

/** Where a stretch of the spoken text stands on the timeline. */
export interface SpokenTime extends Span {
  /** Offsets into the spoken text. */
  readonly start: number;
  readonly end: number;
}

export interface SpokenWord extends SpokenTime {
  /** How its times are known. */
  readonly timing: Timing;
}

/** A character after the upstream's normalization. */
export interface NormalizedTime extends Span {
  /** Offset in the spoken text of the character in which it is spoken. */
  readonly start: number;
  readonly text: string;
}

/** Where one voice of a dialogue speaks. */
export interface VoiceSpan extends Span {
  readonly voiceId: string;
  /** Of the dialogue's inputs. */
  readonly inputIndex: number;
  /** Offsets into the spoken text. */
  readonly start: number;
  end: number;
}

export interface UtteranceOptions {
  readonly id: string;
  readonly acceptedMs: number;
  /** How the text is made ready, where the command does not say. */
  readonly textDefaults: TextOptions;
  /** The model where the command names none; default: the upstream's own. */
  readonly defaultModel?: string;
}

export class Utterance {
  readonly id: string;
  readonly template: RequestTemplate;
  readonly #options: UtteranceOptions;
  readonly #text: SpokenText;
  /** Of text that comes in tokens. */
  readonly #segmenter: Segmenter | null;
  readonly segments: SegmentQueue;
  readonly #balance = new TagBalance();
  readonly pace = new TokenPace();
  /** Audio that is spoken before any segment: it goes on where it was cut. */
  replays: ReplayAttempt[] = [];
  /** End of the spoken text that kept audio says. */
  keptEnd = 0;
  isTextEnded = false;
  /** First half of a surrogate pair whose other half comes with the next text; "" = none. */
  heldHalf = "";
  /** Since when no text has come. */
  idleFromMs: number;
  readonly priority: number;
  /** Its model acts on `[laughs]` and does not say it. */
  readonly isExpressive: boolean;
  /** Marks to echo when it has been played. */
  marks: string[] = [];
  /** Timeline bounds; null until its first, its last audio was pushed. */
  startTicks: number | null = null;
  endTicks: number | null = null;
  /** Behind the last time that was told of it. */
  toldEndTicks = 0;
  padTicks = 0;
  /** Heard before it was interrupted and resumed. */
  heardBeforeTicks = 0;
  isResumed = false;
  /** Offset in the spoken text where it went on last; what is before was heard. */
  resumedStart = 0;
  /** How that place is known. */
  resumedTiming: Timing = "exact";
  #resumedReplays: readonly ReplayAttempt[] = [];
  /** Characters and words of what is being heard, rising; those long heard are forgotten. */
  characters: SpokenTime[] = [];
  words: SpokenWord[] = [];
  /** Segments whose audio was pushed, or is: where each stands; rising. */
  places: SegmentSpan[] = [];
  /** Of what is being heard, as far as somebody wants to know; by their times. */
  normalized: NormalizedTime[] = [];
  voices: VoiceSpan[] = [];
  cues: CueTracks | null = null;
  timing: Timing | "none" = "none";
  /** Text of which no more comes because a request for it has failed; null: none has. */
  failed: readonly Segment[] | null = null;
  charactersSpoken = 0;
  /** Of all requests made for it, also those that were aborted and made again; null: the upstream has told of none. */
  charactersBilled: number | null = null;
  sourceFormat = "";
  voiceIds: readonly string[];
  /** `request-id`s of the segments that the upstream has finished, for stitching. */
  requestIds: string[] = [];
  /** Its speaker was told to pause. */
  isPaused = false;

  private constructor(
    options: UtteranceOptions,
    template: RequestTemplate,
    own: TextOptions & { priority?: number; model_id?: string },
  ) {
    this.id = options.id;
    this.#options = options;
    this.template = template;
    this.idleFromMs = options.acceptedMs;
    this.priority = own.priority ?? 0;
    const { textDefaults } = options;
    const isDialogue = template.kind === "dialogue";
    this.isExpressive = isDialogue || isExpressiveModel(own.model_id ?? options.defaultModel ?? "");
    this.#text = new SpokenText(
      isDialogue
        ? {}
        : {
            clean: own.clean ?? textDefaults.clean ?? [],
            replacements: own.replacements ?? textDefaults.replacements ?? [],
            dropsAudioTags: !this.isExpressive,
          },
    );
    this.#segmenter =
      template.kind === "tokens" ? new Segmenter({ placeBefore: placesOf(this.#text) }) : null;
    this.segments = new SegmentQueue(this.#text, options.acceptedMs);
    this.voiceIds =
      template.kind === "dialogue"
        ? [...new Set(template.command.inputs.map((input) => input.voice_id))]
        : [template.options.voice_id ?? ""];
  }

  /** A whole text. */
  static ofText(options: UtteranceOptions, command: SpeakCommand): Utterance {
    const utterance = new Utterance(options, { kind: "text", options: command }, command);
    utterance.#balance.push(command.text);
    utterance.#text.append(command.text);
    utterance.#text.end();
    utterance.segments.noteArrival(options.acceptedMs);
    utterance.segments.add(wholeSegments(utterance.#text), options.acceptedMs);
    utterance.isTextEnded = true;
    return utterance;
  }

  /** Text that comes in tokens. */
  static ofTokens(options: UtteranceOptions, command: TextCommand): Utterance {
    return new Utterance(options, { kind: "tokens", options: command }, command);
  }

  static ofDialogue(options: UtteranceOptions, command: DialogueCommand): Utterance {
    const utterance = new Utterance(options, { kind: "dialogue", command }, command);
    const text = command.inputs.map((input) => input.text).join("");
    utterance.#text.append(text);
    utterance.segments.noteArrival(options.acceptedMs);
    utterance.segments.add([{ text, start: 0, end: text.length }], options.acceptedMs);
    utterance.isTextEnded = true;
    return utterance;
  }

  /** Everything the client sent for it, and what is spoken for that. */
  get text(): string {
    return this.#text.client;
  }
  get spoken(): SpokenText {
    return this.#text;
  }
  get acceptedMs(): number {
    return this.#options.acceptedMs;
  }

  append(text: string, nowMs: number): void {
    this.#balance.push(text);
    this.pace.token(nowMs);
    this.idleFromMs = nowMs;
    this.#push(this.#text.append(text), nowMs);
  }

  /** Speaks what is there without waiting for the end of a sentence; of markup that is open, what stands before it. */
  flush(nowMs: number): void {
    if (this.#balance.isOpen) {
      this.cutNow("word", nowMs);
      return;
    }
    this.#push(this.#text.flush(), nowMs);
    this.segments.add(this.#segmenter?.flush() ?? [], nowMs);
  }

  endText(nowMs: number): void {
    if (this.isTextEnded) return;
    this.isTextEnded = true;
    this.#push(this.#text.end(), nowMs);
    this.segments.add(this.#segmenter?.end() ?? [], nowMs);
  }

  /** Tokens have dried up: cuts at the best boundary of at least this rank; true if anything can be spoken now. */
  cutNow(rank: "sentence" | "clause" | "word", nowMs: number): boolean {
    if (rank === "word") this.#push(this.#text.lull("short"), nowMs);
    this.segments.add(this.#segmenter?.cutNow(rank) ?? [], nowMs);
    return this.hasSegment;
  }

  /** Tokens stay away, and what is held back is all there is: speaks what of it reads as whole; true as for `cutNow`. */
  cutHeld(nowMs: number): boolean {
    // Whoever was told to pause cannot send what would decide it.
    this.#push(this.isPaused ? this.#text.flush() : this.#text.lull("long"), nowMs);
    return this.cutNow("word", nowMs);
  }

  /** Elements that were opened and not closed, or closed and not opened. */
  unbalancedTags(): readonly string[] {
    return this.#balance.end();
  }

  /** Text that was not asked of the upstream yet, UTF-16 code units; what cleaning took out waits for nothing. */
  get pendingChars(): number {
    const next = this.segments.start ?? this.#text.spoken.length - (this.#segmenter?.pendingChars ?? 0);
    return this.#text.spoken.length - next + this.#text.heldChars;
  }
  /** Text that is in no segment yet. */
  get hasUncutText(): boolean {
    return (this.#segmenter?.pendingChars ?? 0) + this.#text.heldChars > 0;
  }
  /** Some of it waits for what follows it. */
  get hasHeldText(): boolean {
    return this.#text.heldChars > 0;
  }
  /** Something can be spoken. */
  get hasSegment(): boolean {
    return !this.segments.isEmpty || this.replays.length > 0;
  }
  /** All its segments have been taken and none will come. */
  get isExhausted(): boolean {
    return this.isTextEnded && this.segments.isEmpty && this.replays.length === 0;
  }

  takeSegment(): TimedSegment | undefined {
    const segment = this.segments.take();
    if (segment !== undefined) {
      this.charactersSpoken = Math.max(this.charactersSpoken, this.#text.clientEnd(segment.end));
    }
    return segment;
  }

  /** The upstream has begun to answer a request for it, and told what that costs. */
  noteBilled(characters: number): void {
    this.charactersBilled = (this.charactersBilled ?? 0) + characters;
  }

  /** The upstream has finished a request for it. */
  noteRequest(requestId: string): void {
    this.requestIds = [...this.requestIds.slice(-2), requestId];
  }

  /** What follows a segment, as far as it is known: for the upstream's intonation. */
  textBehind(segment: Segment): string {
    return this.#text.spoken.slice(segment.end);
  }

  /** Offsets in `text` where a word must not go on: the joints of a dialogue's inputs. */
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

  /** Whether the client named the voice itself. */
  get namesVoice(): boolean {
    return this.template.kind === "dialogue" || this.template.options.voice_id !== undefined;
  }

  get modelId(): string | undefined {
    return this.template.kind === "dialogue"
      ? this.template.command.model_id
      : this.template.options.model_id;
  }

  /**
   * Forgets what a listener without delay has heard before `ticks`, and the one furthest behind before `heardTicks()`, but
   * for what a cut there needs. Asked only when there is much to forget: that looks at every listener.
   */
  forgetBefore(ticks: number, heardTicks: () => number): void {
    const few = HEARD_TOGETHER / 4;
    const hasMuch =
      isHeard(this.characters[HEARD_TOGETHER], ticks) ||
      isHeard(this.normalized[HEARD_TOGETHER], ticks) ||
      isHeard(this.words[few], ticks) ||
      isHeard(this.places[few], ticks) ||
      isHeard(this.voices[few], ticks);
    if (!hasMuch) return;
    const beforeTicks = Math.min(ticks, heardTicks());
    this.characters = unheard(this.characters, beforeTicks);
    this.words = unheard(this.words, beforeTicks);
    this.places = unheard(this.places, beforeTicks);
    this.normalized = unheard(this.normalized, beforeTicks);
    this.voices = unheard(this.voices, beforeTicks);
  }

  /** Makes it ready to be said anew from the beginning, or from where it went on: nothing was heard since. */
  rewind(nowMs: number): void {
    this.segments.rewind(nowMs);
    this.replays = this.#resumedReplays.map((attempt) => attempt.again());
    this.#forgetPlace();
    this.characters = this.characters.filter((time) => time.start < this.resumedStart);
    this.words = [];
    // They may be of text that is now to come.
    this.requestIds = [];
    if (!this.isResumed) this.timing = "none";
  }

  /** Makes it ready to go on with what was kept when it was cut. */
  resume(kept: Snapshot, nowMs: number): void {
    this.segments.goOn(kept.rest, nowMs);
    this.replays = [...kept.replays];
    this.#resumedReplays = kept.replays;
    this.resumedStart = kept.spokenStart;
    this.resumedTiming = kept.timing;
    this.keptEnd = kept.replays.at(-1)?.segment.end ?? 0;
    this.isResumed = true;
    this.idleFromMs = nowMs;
    this.heardBeforeTicks += Math.max(0, kept.fromTicks - (this.startTicks ?? kept.fromTicks));
    this.#forgetPlace();
    this.characters = this.characters.filter((time) => time.start < kept.spokenStart);
    this.words = [];
  }

  #forgetPlace(): void {
    this.startTicks = null;
    this.endTicks = null;
    this.toldEndTicks = 0;
    this.padTicks = 0;
    this.failed = null;
    this.places = [];
    this.normalized = [];
    this.voices = [];
    this.cues = null;
  }

  #push(spoken: string, nowMs: number): void {
    this.segments.noteArrival(nowMs);
    if (spoken !== "") this.segments.add(this.#segmenter?.push(spoken) ?? [], nowMs);
  }
}

/** Where a text may be cut: not inside what is said for something else. */
function placesOf(text: SpokenText): Required<SegmenterOptions>["placeBefore"] {
  return (at, maxChars) => text.placeBefore(at, maxChars);
}

function wholeSegments(text: SpokenText): Segment[] {
  const { spoken } = text;
  if (isBlank(spoken)) return [];
  if (spoken.length <= WHOLE_MAX_CHARS) return [{ text: spoken, start: 0, end: spoken.length }];
  const segmenter = new Segmenter({
    firstMaxChars: WHOLE_MAX_CHARS,
    maxChars: WHOLE_MAX_CHARS,
    minChars: [WHOLE_MAX_CHARS],
    placeBefore: placesOf(text),
  });
  return [...segmenter.push(spoken), ...segmenter.end()];
}
