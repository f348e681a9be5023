/**
 * Finds out whether an upstream's times run at another pace than its audio, and mends it. Evidence is needed, for times
 * may run ahead of their audio with good reason: chunk after chunk has to end at the same multiple of its audio's end.
 */
import type { Draft } from "./draft.ts";
import { weaker } from "./timed.ts";

/** Where a chunk's audio lies in the response. */
export interface ChunkSpan {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** A pace nearer to 1 than this is sound; one further off is not judged: such times are of another kind. */
const SOUND = 0.02;
const MAX_DEVIATION = 0.25;
/** Times and audio that differ by less begin or end together: what an encoder, a resampler or rounding makes of them. */
export const NEAR_SECONDS = 0.005;
/** Times of a response that kept to its audio so far and that reach further beyond it than this are doubted. */
const DOUBTFUL_SECONDS = 0.1;

type State = "new" | "doubtful" | "sound" | "scaled";

export class Pace {
  #state: State = "new";
  /** Of times to audio, by the ends of the last chunk. */
  #ratio = 1;
  /** End of the audio of the chunk that `#ratio` is from. */
  #measuredSeconds = 0;
  /** Where the first of the chunks that run at this pace ended. */
  #first = { timesSeconds: 0, audioSeconds: 0 };
  /** What may have to be scaled still. */
  #doubted: readonly Draft[] = [];
  /** Whether all chunks so far kept to their audio. */
  #isAnchored = false;
  /** End of times that reach beyond their audio, while they are doubted. */
  #beyondSeconds = 0;

  /** Whether it is better to wait for more before this chunk's times are told. */
  get isInDoubt(): boolean {
    return this.#state === "doubtful" || this.#beyondSeconds > 0;
  }

  /**
   * A chunk whose times go on from those before it; they may be changed. Returns by how much those of the chunks before
   * were divided just now; 1 = they were not.
   */
  meet(run: readonly Draft[], audio: ChunkSpan): number {
    const hadDoubt = this.#state === "doubtful";
    const last = run.at(-1)?.endSeconds ?? 0;
    const isBeyond = this.#isAnchored && last > audio.endSeconds + DOUBTFUL_SECONDS;
    this.#beyondSeconds = isBeyond ? last : 0;
    this.#isAnchored =
      Math.abs(last - audio.endSeconds) <= NEAR_SECONDS && (this.#isAnchored || this.#state === "new");
    const ratio = last / audio.endSeconds;
    const pace = this.#paceTo(last, audio.endSeconds);
    this.#judge(run, { ratio, pace, last }, audio);
    if (this.#state !== "scaled") return 1;
    divide(run, pace);
    return hadDoubt ? pace : 1;
  }

  /**
   * What times have to be divided by. An encoder that holds back some of the audio makes all ends seem late by as much,
   * so what counts is how far times and audio have come since the first end, where the rest is that small.
   */
  #paceTo(timesSeconds: number, audioSeconds: number): number {
    const first = this.#first;
    const slope = (timesSeconds - first.timesSeconds) / (audioSeconds - first.audioSeconds);
    const heldSeconds = timesSeconds / slope - audioSeconds;
    return Math.abs(heldSeconds) <= NEAR_SECONDS ? slope : timesSeconds / audioSeconds;
  }

  /** A chunk that says nothing of its pace; `audioSeconds`: end of its audio, if known. */
  pass(audioSeconds = Number.POSITIVE_INFINITY): void {
    if (audioSeconds > this.#beyondSeconds - DOUBTFUL_SECONDS) this.#beyondSeconds = 0;
    // The rest that an encoder held back comes in a chunk of its own: too short to tell anything.
    if (this.#state === "doubtful" && audioSeconds > this.#measuredSeconds + DOUBTFUL_SECONDS) this.#trust();
  }

  #judge(
    run: readonly Draft[],
    { ratio, pace, last }: { readonly ratio: number; readonly pace: number; readonly last: number },
    audio: ChunkSpan,
  ): void {
    const deviation = Math.abs(ratio - 1);
    const isSame = Math.abs(ratio - this.#ratio) * this.#measuredSeconds <= NEAR_SECONDS;
    if (this.#state === "new") {
      const isSuspect =
        deviation > SOUND && deviation <= MAX_DEVIATION && deviation * audio.endSeconds > NEAR_SECONDS;
      this.#state = isSuspect ? "doubtful" : "sound";
      this.#doubted = isSuspect ? run : [];
      this.#first = { timesSeconds: last, audioSeconds: audio.endSeconds };
    } else if (this.#state === "doubtful" && isSame) {
      this.#state = "scaled";
      divide(this.#doubted, pace);
      this.#doubted = [];
    } else if (this.#state === "doubtful") this.#trust();
    else if (this.#state === "scaled" && !isSame) this.#trust();
    this.#ratio = ratio;
    this.#measuredSeconds = audio.endSeconds;
  }

  #trust(): void {
    this.#state = "sound";
    this.#doubted = [];
  }
}

function divide(drafts: readonly Draft[], ratio: number): void {
  for (const draft of drafts) {
    draft.startSeconds /= ratio;
    draft.endSeconds /= ratio;
    draft.timing = weaker(draft.timing, "scaled");
  }
}
