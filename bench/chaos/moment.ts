/** A fault that comes over all callers at once, at a moment of its own. */
import { monotonicMs, wait } from "../kit/monotonic.ts";
import type { Run } from "./caller.ts";
import { callAll, type Plan, Plans, type Scene, type Stage } from "./scene.ts";

export interface MomentOptions {
  readonly stage: Stage;
  /** Where each caller goes; asked again at each try. */
  readonly baseUrl: (plan: Plan) => string;
  /** Before the callers begin; default: nothing has to be made ready. */
  readonly prepare?: (plans: readonly Plan[]) => Promise<void>;
  /** Lets the fault loose; resolves when it is mended, as far as that is not the gateway's own work. */
  readonly strike: () => Promise<void>;
  /** What is looked at when all is over; may find more shortfalls. Default: nothing. */
  readonly check?: (runs: readonly Run[]) => Promise<readonly Run[]>;
  readonly close: () => Promise<void>;
}

/** Callers begin in the first seconds and speak for some; it comes somewhere in these. */
const EARLIEST_MS = 500;
const LATEST_MS = 5000;

/** Those who spoke when it came count. */
export function momentScene(options: MomentOptions): Scene {
  const { stage, strike, close } = options;
  const plans = new Plans(stage);
  return {
    batch: async (calls) => {
      const planned = await plans.next(calls);
      await options.prepare?.(planned);
      let strikeMs: number | null = null;
      const calling = callAll(planned, {
        baseUrl: options.baseUrl,
        struckMs: (_, sinceMs) => (strikeMs !== null && strikeMs >= sinceMs ? strikeMs : null),
      });
      const striking = wait(EARLIEST_MS + stage.random.below(LATEST_MS - EARLIEST_MS)).then(() => {
        strikeMs = monotonicMs();
        return strike();
      });
      const [runs] = await Promise.all([calling, striking]);
      const struck = runs.filter(({ isStruck }) => isStruck);
      return [...((await options.check?.(struck)) ?? struck)];
    },
    [Symbol.asyncDispose]: close,
  };
}
