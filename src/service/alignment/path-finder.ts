/**
 * Dynamic time warping, forwards: the cheapest ways through the states of a text for the audio that has come so far. Each state
 * knows by which words its cheapest way came.
 */
import { FEATURES } from "./features.ts";
import type { ReferenceModel } from "./reference-model.ts";

/**
 * What a way costs, beside how unlike the sounds are (about 0.7 a frame where they are the same words): tuned by
 * bench/align.bench.ts on two voices, and measured on others.
 */
const COSTS = {
  /** A frame of audio more or less than the reference has, and two. */
  stay: 0.183,
  skip: 0.177,
  skipTwo: 0.648,
  /** Silence where nothing asks for it; none where punctuation asks for it. */
  unaskedSilence: 1.38,
  passedSilence: 0.407,
  /** A silent frame, by its level. */
  silence: 0.452,
  silenceADecibel: 0.0381,
  silenceLevel: -38.2,
  leastSilence: 0.05,
  mostSilence: 0.939,
  /** To begin without any silence. */
  start: 2.29,
};
/** Ways that cost so much more than the cheapest one are let go. */
const BEAM = 15;
/** A way that costs so much more is a third as likely. */
const LIKELIHOOD_COST = 0.6;

/**
 * How much more a frame may cost in order than in any order. 160 sentences by four voices: 0.17 for 99 of 100 with their own text, and
 * 0.19 for 1 of 100 with another sentence's.
 */
const MAX_EXCESS = 0.18;
/** Frames of speech, of each so many, and so many in all before anything is said of them. */
const SPEECH_DB = -30;
const COMPARED_EVERY = 3;
const LEAST_COMPARED = 20;
const SURE_EXCESS = 0.22;
const SURE_COMPARED = 50;

/** A word begins in a frame, or ends where silence follows; and what was before. */
interface Step {
  readonly word: number;
  readonly isEnd: boolean;
  readonly frame: number;
  readonly before: Step | null;
}

/** A way that is followed: where in the text it is, and what it has cost. */
class Ways {
  readonly costs: Float64Array;
  readonly steps: (Step | null)[];

  constructor(states: number) {
    this.costs = new Float64Array(states).fill(Number.POSITIVE_INFINITY);
    this.steps = new Array<Step | null>(states).fill(null);
  }
}

/** States forward in one frame: one each, or silence or frames are passed over. */
const MAX_FORWARD = 3;

export class PathFinder {
  readonly #model: ReferenceModel;
  #ways: Ways;
  #nextWays: Ways;
  /** First and last state that any way has come to. */
  #from = 0;
  #to = 0;
  #frame = 0;
  #least = 0;
  /** Frames of speech that were compared with all of the text, and what they cost. */
  readonly #compared = { frames: 0, inOrder: 0, inAnyOrder: 0 };

  constructor(model: ReferenceModel) {
    this.#model = model;
    this.#ways = new Ways(model.wordOf.length);
    this.#nextWays = new Ways(model.wordOf.length);
  }

  /** Frames that were looked at. */
  get frame(): number {
    return this.#frame;
  }

  /**
   * Whether the audio says the text, as far as it has come: where it does, the sounds in the text's order are hardly less like
   * it than the text's sounds in any order.
   */
  get isLike(): boolean {
    return this.#compared.frames < LEAST_COMPARED || this.#excess <= MAX_EXCESS;
  }

  /** While it comes, more is wanted for that: what is not given then comes late, if the rest is like the text. */
  get isSurelyUnlike(): boolean {
    return this.#compared.frames >= SURE_COMPARED && this.#excess > SURE_EXCESS;
  }

  get #excess(): number {
    const { frames, inOrder, inAnyOrder } = this.#compared;
    return (inOrder - inAnyOrder) / frames;
  }

  /** The frame in which a word begins; infinite: it has not, or there is none. */
  startOf(word: number): number {
    return this.#likelyFrame(word, false);
  }

  /** The frame in which silence begins behind a word; infinite: there is none. */
  endOf(word: number): number {
    return this.#likelyFrame(word, true);
  }

  /** The next frame. `features`: of all frames, this one included; `level`: dB below what is loud. */
  next(features: Float32Array, level: number): void {
    const [{ costs, steps }, next] = [this.#ways, this.#nextWays];
    const { wordOf, silence } = this.#model;
    const silentCost = silentCostOf(level);
    const limit = this.#least + BEAM;
    const last = Math.min(this.#to + MAX_FORWARD, costs.length - 1);
    let [least, from, to] = [Number.POSITIVE_INFINITY, -1, 0];
    for (let state = this.#from; state <= last; state += 1) {
      const isSilence = silence[state] !== 0;
      const forward = this.#frame === 0 ? 0 : isSilence ? this.#intoSilence(state) : this.#intoSpeech(state);
      let cost =
        this.#frame === 0
          ? startCostOf(state)
          : (costs[state - forward] ?? 0) + this.#moveCost(state, forward);
      if (!(cost <= limit)) {
        next.costs[state] = Number.POSITIVE_INFINITY;
        next.steps[state] = null;
        continue;
      }
      cost += isSilence ? silentCost : this.#distance(features, state);
      next.costs[state] = cost;
      next.steps[state] = this.#stepInto(steps[state - forward] ?? null, wordOf[state] ?? -1, isSilence);
      if (from < 0) from = state;
      to = state;
      least = Math.min(least, cost);
    }
    this.#compare(features, level, least - this.#least);
    this.#forget(from, last);
    this.#nextWays = this.#ways;
    this.#ways = next;
    this.#from = Math.max(from, 0);
    this.#to = to;
    this.#least = least;
    this.#frame += 1;
  }

  /** The audio is over: ways that have not come to the end of the text are let go, where any has. */
  finish(): void {
    const { costs } = this.#ways;
    // The last word, or the silence behind it.
    const end = costs.length - 2;
    const least = Math.min(
      costs[end] ?? Number.POSITIVE_INFINITY,
      costs[end + 1] ?? Number.POSITIVE_INFINITY,
    );
    if (least === Number.POSITIVE_INFINITY) return;
    this.#from = end;
    this.#to = end + 1;
    this.#least = least;
  }

  /** `cost`: of the frame, on the cheapest way. */
  #compare(features: Float32Array, level: number, cost: number): void {
    if (level < SPEECH_DB || this.#frame % COMPARED_EVERY !== 0) return;
    const { silence } = this.#model;
    let least = Number.POSITIVE_INFINITY;
    for (let state = 1; state < silence.length; state += 2)
      if (silence[state] === 0) least = Math.min(least, this.#distance(features, state));
    if (least === Number.POSITIVE_INFINITY) return;
    this.#compared.frames += 1;
    this.#compared.inOrder += cost;
    this.#compared.inAnyOrder += least;
  }

  #intoSilence(state: number): number {
    const { costs } = this.#ways;
    if (state === 0) return 0;
    return (costs[state - 1] ?? 0) + this.#moveCost(state, 1) < (costs[state] ?? 0) ? 1 : 0;
  }

  #intoSpeech(state: number): number {
    const { costs } = this.#ways;
    const { silence } = this.#model;
    let [best, least] = [0, (costs[state] ?? 0) + COSTS.stay];
    for (let forward = 1; forward <= Math.min(MAX_FORWARD, state); forward += 1) {
      // From a silence to the next sound only.
      if (forward > 1 && silence[state - forward] !== 0) continue;
      const cost = (costs[state - forward] ?? 0) + this.#moveCost(state, forward);
      if (cost >= least) continue;
      best = forward;
      least = cost;
    }
    return best;
  }

  #moveCost(state: number, forward: number): number {
    const { silence } = this.#model;
    if (silence[state] !== 0) return forward === 1 && silence[state] === 1 ? COSTS.unaskedSilence : 0;
    if (forward === 0) return COSTS.stay;
    if (forward === 1) return 0;
    const isAsked = silence[state - 1] === 2 || (forward === 3 && silence[state - 2] === 2);
    const isSilence = silence[state - 1] !== 0 || (forward === 3 && silence[state - 2] !== 0);
    const passed = isAsked ? COSTS.passedSilence : 0;
    if (forward === 2) return isSilence ? passed : COSTS.skip;
    return isSilence ? COSTS.skip + passed : COSTS.skipTwo;
  }

  #stepInto(before: Step | null, word: number, isSilence: boolean): Step | null {
    const frame = this.#frame;
    if (!isSilence) return before?.word === word ? before : { word, isEnd: false, frame, before };
    return before === null || before.isEnd ? before : { word, isEnd: true, frame, before };
  }

  /** What lies outside the states of the last frame must be empty when they are used again. */
  #forget(from: number, last: number): void {
    const [old, next] = [this.#ways.costs, this.#nextWays.costs];
    old.fill(Number.POSITIVE_INFINITY, this.#from, last + 1);
    next.fill(Number.POSITIVE_INFINITY, Math.max(0, this.#from - MAX_FORWARD), Math.max(from, 0));
    next.fill(Number.POSITIVE_INFINITY, last + 1, last + 1 + MAX_FORWARD);
  }

  /** To the voice that sounds most like it. */
  #distance(features: Float32Array, state: number): number {
    const { voices, features: reference } = this.#model;
    const from = this.#frame * FEATURES;
    let least = Number.POSITIVE_INFINITY;
    for (let voice = 0; voice < voices; voice += 1) {
      const at = (state * voices + voice) * FEATURES;
      let sum = 0;
      for (let i = 0; i < FEATURES; i += 1) {
        const difference = (features[from + i] ?? 0) - (reference[at + i] ?? 0);
        sum += difference * difference;
      }
      if (sum < least) least = sum;
    }
    return Math.sqrt(least);
  }

  /** By which frame half of all ways have taken a step, the likelier ones counting more. */
  #likelyFrame(word: number, isEnd: boolean): number {
    const { costs, steps } = this.#ways;
    const taken: { readonly frame: number; readonly weight: number }[] = [];
    let total = 0;
    for (let state = this.#from; state <= this.#to; state += 1) {
      const weight = Math.exp((this.#least - (costs[state] ?? 0)) / LIKELIHOOD_COST);
      if (!(weight > 1e-3)) continue;
      total += weight;
      let step = steps[state] ?? null;
      while (step !== null && (step.word > word || (step.word === word && step.isEnd && !isEnd)))
        step = step.before;
      if (step !== null && step.word === word && step.isEnd === isEnd)
        taken.push({ frame: step.frame, weight });
    }
    taken.sort((a, b) => a.frame - b.frame);
    let sum = 0;
    for (const { frame, weight } of taken) {
      sum += weight;
      if (sum >= total / 2) return frame;
    }
    return Number.POSITIVE_INFINITY;
  }
}

function startCostOf(state: number): number {
  if (state === 0) return 0;
  return state === 1 ? COSTS.start : Number.POSITIVE_INFINITY;
}

function silentCostOf(level: number): number {
  const cost = COSTS.silence + COSTS.silenceADecibel * (level - COSTS.silenceLevel);
  return Math.min(Math.max(cost, COSTS.leastSilence), COSTS.mostSilence);
}
