/** The segments of one utterance that are to be asked of the upstream, and those that were, in case they are asked again. */
import type { Segment } from "../../text/segmenter.ts";
import type { SpokenText } from "../../text/spoken-text.ts";
import { ArrivalTimes, newStages, type SegmentStages } from "../synthesis/segment-stages.ts";

/** How often text is recovered from one and the same place before its failure is the utterance's. */
const MAX_STUCK = 3;
/** Segments whose latency is reported. */
const MAX_REPORTED_SEGMENTS = 64;

/** A segment with what is known of its making. */
export interface StagedSegment extends Segment {
  readonly stages: SegmentStages;
  /** The rest of one whose response broke off. */
  readonly isRest?: true;
}

export class SegmentQueue {
  readonly #text: SpokenText;
  readonly #acceptedMs: number;
  readonly #arrivals = new ArrivalTimes();
  #waiting: StagedSegment[] = [];
  /** Segments that were taken, to be put back if all is to be said again. */
  #taken: StagedSegment[] = [];
  #stuckCount = 0;
  /** Times of the first segments whose requests were made. */
  stages: SegmentStages[] = [];

  /** `acceptedMs`: clock time of the command. */
  constructor(text: SpokenText, acceptedMs: number) {
    this.#text = text;
    this.#acceptedMs = acceptedMs;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }
  /** Offset in the spoken text of what waits; undefined where nothing does. */
  get start(): number | undefined {
    return this.#waiting[0]?.start;
  }

  /** All the spoken text that there is has come by now. */
  noteArrival(nowMs: number): void {
    this.#arrivals.note(this.#text.spoken.length, nowMs);
  }

  add(segments: readonly Segment[], nowMs: number): void {
    for (const segment of segments) this.#waiting.push(this.#staged(segment, nowMs));
  }

  take(): StagedSegment | undefined {
    const segment = this.#waiting.shift();
    if (segment === undefined) return undefined;
    this.#taken.push(segment);
    if (this.stages.length < MAX_REPORTED_SEGMENTS) this.stages.push(segment.stages);
    return segment;
  }

  /** Whether a response that broke off may be asked for again from `end` on: not again and again from one place. */
  mayRecover(segment: Segment, end: number): boolean {
    return end > segment.start || this.#stuckCount < MAX_STUCK;
  }

  /** A response broke off: the rest of its segment is said before all others. */
  recover(segment: StagedSegment, rest: Segment, nowMs: number): void {
    const isStuck = rest.start <= segment.start;
    this.#stuckCount = isStuck ? this.#stuckCount + 1 : 0;
    const arrivedMs = isStuck ? segment.stages.arrivedMs : nowMs;
    const stages = newStages(this.#text.clientRange(rest.start, rest.end), { arrivedMs, segmentedMs: nowMs });
    this.stages = this.stages.filter((own) => !isStuck || own !== segment.stages);
    this.#waiting.unshift({ ...rest, stages, isRest: true });
  }

  /** What was taken is all to be asked for again: nothing of it was heard. */
  rewind(nowMs: number): void {
    const taken = this.#taken.splice(0);
    // What was asked for in part is asked for in one again.
    const again = taken.filter(
      (segment, index) => !taken.slice(0, index).some((other) => isPart(segment, other)),
    );
    this.#waiting = this.#waiting.filter((segment) => !taken.some((other) => isPart(segment, other)));
    this.#stuckCount = 0;
    this.#putBack(again, nowMs);
    this.stages = this.stages.filter((stages) => !taken.some((segment) => segment.stages === stages));
  }

  /** Goes on with `rest`, before all that waits: what was taken before is heard, or kept elsewhere. */
  goOn(rest: readonly Segment[], nowMs: number): void {
    this.#putBack(rest, nowMs);
    this.#taken = [];
  }

  /** Asks for no more of what waits than `restOf` leaves of each segment. */
  skip(restOf: (segment: Segment) => Segment | null, nowMs: number): void {
    this.#waiting = this.#waiting.flatMap((segment) => {
      const rest = restOf(segment);
      if (rest === null) return [];
      return rest.start === segment.start ? [segment] : [this.#staged(rest, nowMs)];
    });
  }

  #putBack(segments: readonly Segment[], nowMs: number): void {
    this.#waiting.unshift(...segments.map((segment) => this.#staged(segment, nowMs)));
  }

  #staged({ text, start, end }: Segment, nowMs: number): StagedSegment {
    const arrivedMs = this.#arrivals.at(start) ?? this.#acceptedMs;
    const stages = newStages(this.#text.clientRange(start, end), { arrivedMs, segmentedMs: nowMs });
    return { text, start, end, stages };
  }
}

function isPart(segment: Segment, whole: Segment): boolean {
  return segment.start >= whole.start && segment.end <= whole.end;
}
