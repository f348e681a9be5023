/** Sessions that speak without a pause, each to one listener, for a window in which the CPU is counted. */
import { speakMessage, speechText } from "./bench.ts";
import type { LoadCommands } from "./commands.ts";
import type { Fixture } from "./fixture.ts";
import { wait } from "./monotonic.ts";

export interface SteadySize {
  readonly sessions: number;
  /** Each utterance lasts so long, and the sessions begin over this time. */
  readonly utteranceSeconds: number;
  readonly settleSeconds: number;
  readonly windowSeconds: number;
}

/** Name of the load client's group. */
export const STEADY_GROUP = "sessions";

/** Resolves when all speak. `path`: `{i}` is the session's number. Gives how many failed to open. */
export async function speakSteadily(
  load: Fixture<LoadCommands>,
  { port, path, size }: { readonly port: number; readonly path: string; readonly size: SteadySize },
): Promise<number> {
  const { sessions, utteranceSeconds, settleSeconds, windowSeconds } = size;
  const message = speakMessage(speechText(utteranceSeconds));
  const utterances = Math.ceil((utteranceSeconds + settleSeconds + windowSeconds) / utteranceSeconds) + 2;
  const { failed } = await load.ask("open", {
    group: STEADY_GROUP,
    port,
    path,
    count: sessions,
    rampMs: utteranceSeconds * 1000,
    messages: Array.from({ length: utterances }, () => message),
  });
  await wait(settleSeconds * 1000);
  return failed;
}
