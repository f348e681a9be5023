/** A gateway with a fault that is about to come, and callers that it comes over. */
import { monotonicMs, wait } from "../kit/monotonic.ts";
import type { Random } from "../kit/random.ts";

import { type Call, makeCall, type Run } from "./caller.ts";
import type { ServiceProgram } from "./service.ts";
import { someText } from "./texts.ts";

export interface Stage {
  /** File URL of the build, slash at the end. */
  readonly distUrl: string;
  readonly service: ServiceProgram;
  readonly random: Random;
  /** For files of this run; removed behind it. */
  readonly folder: string;
}

/** What a fault needs to be let loose, several times one after the other. */
export interface Scene extends AsyncDisposable {
  /** So many callers at once; the runs whose fault did not strike count for nothing. */
  batch(calls: number): Promise<Run[]>;
}

export interface Fault {
  readonly name: string;
  /** What happens, for people. */
  readonly says: string;
  /** What the machine lacks for it; default: nothing is needed. */
  readonly missing?: () => string | null;
  /** Callers at once: fewer where each kill takes its time. */
  readonly callsAtOnce: number;
  open(stage: Stage): Promise<Scene>;
}

/** Longest time until a caller begins: all at once would wait for the voice, and none would be in the middle. */
const SPREAD_MS = 2500;
const INTERRUPTED_SHARE = 0.15;
const STREAMED_SHARE = 0.3;
const BURST_SHARE = 0.3;

/** What a caller of this stage says, and how. */
export type Plan = Pick<
  Call,
  "session" | "text" | "seed" | "pace" | "isStreamed" | "interruptMs" | "truth"
> & {
  readonly answerBytes: number;
  readonly delayMs: number;
};

/** Numbers all calls of a stage: seeds and names of sessions are used once. */
export class Plans {
  readonly #stage: Stage;
  #count = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async next(count: number): Promise<Plan[]> {
    const plans: Plan[] = [];
    for (let index = 0; index < count; index += 1) plans.push(await this.#plan());
    return plans;
  }

  async #plan(): Promise<Plan> {
    const { random, service } = this.#stage;
    this.#count += 1;
    const seed = this.#count;
    const text = someText(random);
    const { audio, answerBytes } = await service.truthOf(text, seed);
    const isStreamed = random.chance(STREAMED_SHARE);
    return {
      session: `chaos-${seed}`,
      text,
      seed,
      pace: random.chance(BURST_SHARE) ? "burst" : "realtime",
      isStreamed,
      interruptMs: random.chance(INTERRUPTED_SHARE) ? random.below(3000) : null,
      // Tokens are cut into requests of their own.
      truth: isStreamed ? null : audio,
      answerBytes,
      delayMs: random.below(SPREAD_MS),
    };
  }
}

export async function callAll(
  plans: readonly Plan[],
  of: {
    readonly baseUrl: (plan: Plan) => string;
    /** `sinceMs`: when it began. */
    readonly struckMs: (plan: Plan, sinceMs: number) => number | null;
  },
): Promise<Run[]> {
  return await Promise.all(
    plans.map(async (plan) => {
      await wait(plan.delayMs);
      const sinceMs = monotonicMs();
      return await makeCall({
        ...plan,
        baseUrl: () => of.baseUrl(plan),
        struckMs: () => of.struckMs(plan, sinceMs),
      });
    }),
  );
}
