/**
 * The end of all audio rendered so far, and what happens there: slices are rendered, utterances and segments begin and end,
 * and segments of one utterance are joined.
 */
import { parseUpstreamFormat } from "../../audio/formats.ts";
import { TICKS_PER_MS, TICKS_PER_SECOND } from "../../timing/ticks.ts";
import { CueTracks } from "../captions/cue-tracks.ts";
import { layOutLate } from "../captions/late-cues.ts";
import type { EventWriter } from "../events/event-writer.ts";
import type { OutputRouter } from "../output/output-router.ts";
import { RecentAudio } from "../output/recent-audio.ts";
import type { SessionDeps } from "../session-deps.ts";
import { generatedFormat } from "../sound.ts";
import { type Slice, silenceSlice } from "../source.ts";
import type { Attempt } from "../synthesis/attempt.ts";
import { tellWave } from "../tape/wave.ts";
import type { UnderSounds } from "../under/under-sounds.ts";
import type { SegmentRenderer } from "./segment-renderer.ts";
import { Splice } from "./splice.ts";
import { UnsentSegments } from "./unsent-segments.ts";
import type { AudioEnd, Utterance } from "./utterance.ts";

/** Audio that was heard is kept this long: the word in which speech is cut may have begun before. */
const RECENT_TICKS = 2000 * TICKS_PER_MS;
/** Times of text are, too: a player that says where it is may be as far behind as the longest lead, before it has said so. */
const RECENT_TEXT_TICKS = 12_000 * TICKS_PER_MS;
/** PCM at 48 kHz for the default `resume-reach-ms` and the longest lead stays under this. */
const MAX_RECENT_BYTES = 4 * 1024 * 1024;
/**
 * A player that is no further behind the playhead is not late: what is kept behind that has the word that it plays, and it has
 * as good as heard what the playhead has passed.
 */
export const LATE_PLAYER_TICKS = 500 * TICKS_PER_MS;
/** Sounds go on alone in pieces of this: most frames are cut out of one without copying. */
const UNDER_ONLY_TICKS = 20 * TICKS_PER_MS;
/** How far behind listeners play is asked so often: that looks at each of them. */
const ASK_EVERY_TICKS = 250 * TICKS_PER_MS;

export interface WriteHeadOptions {
  readonly deps: SessionDeps;
  readonly output: OutputRouter;
  readonly writer: EventWriter;
  /** What is mixed into speech. */
  readonly under: UnderSounds;
  readonly playheadTicks: () => number;
  /** Where the listener is that is furthest behind. */
  readonly heardTicks: () => number;
  /** How far behind the playhead a listener plays that has said so; 0 where none has. */
  readonly behindTicks: () => number;
}

export class WriteHead {
  readonly #options: WriteHeadOptions;
  readonly #splice: Splice;
  readonly recent = new RecentAudio(MAX_RECENT_BYTES);
  readonly #reachTicks: number;
  /** How far behind the playhead audio is kept, and where that was asked last. */
  #recentTicks = RECENT_TICKS;
  #askedTicks = 0;
  readonly unsent = new UnsentSegments();
  #ticks = 0;
  /** Sounds go on alone behind the last speech: nobody's frames were filled up there. */
  #isUnderOnly = false;

  constructor(options: WriteHeadOptions) {
    this.#options = options;
    this.#splice = new Splice(options.deps.settings);
    this.#reachTicks = options.deps.settings.resumeReachMs * TICKS_PER_MS;
  }

  /** Where it is. */
  get ticks(): number {
    return this.#ticks;
  }

  push(slice: Slice): void {
    const { output, deps, under } = this.#options;
    const mixed = under.isEmpty ? slice : under.mix(slice, this.#ticks);
    output.push(mixed);
    if (deps.tape !== undefined) tellWave(deps.tape, mixed, this.#ticks);
    // Without what is under it: kept speech is mixed when it is played.
    if (deps.settings.resumeMs > 0) this.recent.push(this.#ticks, slice);
    this.#ticks += slice.ticks;
  }

  /** First audio of an utterance has come: moves to where all last frames have ended, and says where that is. */
  moveToFrameEnd(): number {
    this.#splice.forget();
    if (!this.#isUnderOnly || !this.#fillFrames())
      this.#ticks = this.#options.output.padToCommonStart(this.#ticks);
    this.#isUnderOnly = false;
    return this.#ticks;
  }

  /** Whether sounds go on where nothing is spoken. */
  get isUnderOnly(): boolean {
    return this.#isUnderOnly;
  }

  /** Sounds go on up to there, if any are under speech; nothing is spoken. */
  goOnUnderOnly(untilTicks: number): void {
    const { under } = this.#options;
    if (!under.isEmpty && this.#ticks < untilTicks) {
      if (!this.#isUnderOnly) this.moveToFrameEnd();
      this.#isUnderOnly = true;
      while (this.#ticks < untilTicks && !under.isEmpty) this.#pushUnderOnly(UNDER_ONLY_TICKS);
    }
    if (this.#isUnderOnly && under.isEmpty) this.#fillUp();
  }

  /** Those that were to end are over, where no audio is made any more in which they could fall to nothing. */
  endStopped(): void {
    this.#options.under.endStopped(this.#ticks);
    if (this.#isUnderOnly && this.#options.under.isEmpty) this.#fillUp();
  }

  #pushUnderOnly(ticks: number): void {
    const { output, under, deps } = this.#options;
    const { sampleRate: rate = 24_000 } =
      parseUpstreamFormat(generatedFormat(output.renditionsInUse())) ?? {};
    const slice = under.alone(ticks, { atTicks: this.#ticks, rate });
    output.push(slice);
    if (deps.tape !== undefined) tellWave(deps.tape, slice, this.#ticks);
    this.#ticks += slice.ticks;
  }

  #fillUp(): void {
    this.#isUnderOnly = false;
    this.#ticks = this.#options.output.flush(this.#ticks);
  }

  /**
   * Sounds go on up to where everybody's frame ends, so that no silence has to fill it. False where frames of several lengths
   * end nowhere together: then it does.
   */
  #fillFrames(): boolean {
    const { output, under } = this.#options;
    const endTicks = output.frameEnd(this.#ticks);
    const missingTicks = endTicks - this.#ticks;
    if (missingTicks > 0 && !under.isEmpty) this.#pushUnderOnly(missingTicks);
    if (this.#ticks === endTicks && output.endsFramesAt(endTicks)) return true;
    this.#ticks = output.flush(this.#ticks);
    return false;
  }

  /** The next segment begins here, behind the pause that the one before asks for. */
  startSegment(utterance: Utterance, { segment, sourceFormat }: Attempt): void {
    this.#pushPause(utterance, sourceFormat);
    this.#noteCues(utterance, segment.start);
    utterance.transcript.beginSegment(segment, this.#ticks);
    this.unsent.add(segment.stages, this.#ticks);
  }

  endSegment({ utterance, segment, spliceText, trailingSilenceTicks }: SegmentRenderer): void {
    utterance.transcript.endSegment(segment.end, this.#ticks);
    this.#splice.note({ utterance, text: spliceText, silenceTicks: trailingSilenceTicks });
  }

  /** Its last audio is rendered: everybody's last frame is filled. */
  endAudio(utterance: Utterance): AudioEnd {
    if (utterance.startTicks === null) return { endTicks: this.#ticks, padTicks: 0 };
    this.#fillEmitted(utterance);
    const endTicks = this.#ticks;
    const { output, under } = this.#options;
    // Nobody hears sounds alone who takes them as fast as they come.
    if (under.isEmpty || !output.demand.hasRealtime) this.#ticks = output.flush(endTicks);
    else this.#isUnderOnly = this.#fillFrames();
    return { endTicks, padTicks: this.#ticks - endTicks };
  }

  /** Its audio may have broken off inside a word that was emitted: its times can't be taken back, so there is silence for them. */
  #fillEmitted({ sourceFormat, transcript: { emittedEndTicks } }: Utterance): void {
    if (emittedEndTicks <= this.#ticks) return;
    const slice = silenceSlice(sourceFormat, emittedEndTicks - this.#ticks);
    if (slice.ticks > 0) this.push(slice);
  }

  /** What was heard when the playhead stands there, by the listener that is furthest behind, and is not needed for a cut. */
  forgetHeard(utterance: Utterance | undefined, playheadTicks: number): void {
    const wasTicks = this.#recentTicks;
    this.#lookBehind(playheadTicks);
    this.recent.forgetBefore(playheadTicks - this.#recentTicks);
    if (wasTicks > RECENT_TICKS && this.#recentTicks === RECENT_TICKS) this.recent.shrink();
    const textTicks = Math.max(RECENT_TEXT_TICKS, this.#recentTicks);
    utterance?.transcript.forgetBefore(
      playheadTicks - textTicks,
      () => this.#options.heardTicks() - RECENT_TICKS,
    );
  }

  /** Behind a listener that says that it plays late as much is kept as behind the playhead elsewhere. */
  #lookBehind(playheadTicks: number): void {
    if (Math.abs(playheadTicks - this.#askedTicks) < ASK_EVERY_TICKS) return;
    this.#askedTicks = playheadTicks;
    const behindTicks = Math.min(this.#options.behindTicks(), this.#reachTicks);
    // The playhead moves on by as much before this is asked again.
    this.#recentTicks = RECENT_TICKS + (behindTicks > LATE_PLAYER_TICKS ? behindTicks + ASK_EVERY_TICKS : 0);
  }

  /** Somebody asks for captions: what of `notOver` is rendered and not heard is laid out in the styles that are new. */
  layOutCues(notOver: readonly Utterance[], segmentRenderer: SegmentRenderer | null): void {
    const { output, writer, playheadTicks } = this.#options;
    const [styles, heardTicks] = [output.cueStyles, playheadTicks()];
    for (const utterance of notOver) {
      if (utterance.startTicks === null) continue;
      const events = segmentRenderer?.utterance === utterance ? segmentRenderer.events : null;
      const isFollowed = utterance !== notOver.at(-1);
      layOutLate({ utterance, styles, events, heardTicks, isFollowed, writer });
    }
    segmentRenderer?.emitUpTo(this.#ticks);
  }

  /** The audio was cut: what follows stands here. */
  cutTo(ticks: number): void {
    this.#ticks = ticks;
    this.#isUnderOnly = false;
    this.#options.under.cutTo(ticks);
    this.recent.clear();
    this.#splice.forget();
    this.unsent.clear();
  }

  /** The silence that punctuation asks for between two segments, less what the upstream has left of its own. */
  #pushPause(utterance: Utterance, format: string): void {
    const ticks = this.#splice.takePause(utterance);
    // Where listeners are waiting already, the pause has been. Those that take it as it comes are not waiting.
    const { output, playheadTicks } = this.#options;
    if (ticks === 0 || (output.demand.hasRealtime && this.#ticks <= playheadTicks())) return;
    const slice = silenceSlice(format, ticks);
    if (slice.ticks > 0) this.push(slice);
  }

  #noteCues(utterance: Utterance, spokenStart: number): void {
    const styles = this.#options.output.cueStyles;
    if (styles.length === 0) return;
    const cues = utterance.transcript.withCues(() => new CueTracks(utterance));
    for (const style of styles) cues.add(style, spokenStart, this.#ticks / TICKS_PER_SECOND);
  }
}
