/** Requests to the upstream of clients that get its audio as it comes: what each is made of, and how it is read. */
import type { DictionaryLocator } from "../protocol/elevenlabs/message-json.ts";
import type { SocketSettings } from "../protocol/elevenlabs/socket-settings.ts";
import { newStages } from "../session/synthesis/segment-stages.ts";
import { UpstreamAttempt, type UpstreamAttemptOptions } from "../session/synthesis/upstream-attempt.ts";
import { type Stitch, stitch } from "../upstream/stitching.ts";
import type { SynthesisRequest } from "../upstream/types.ts";

/** Audio that waits for the client before the upstream is held, and what it is read on at, bytes. */
const HOLD_BYTES = 262_144;
const READ_ON_BYTES = 65_536;
/** Text before that may go upstream, UTF-16 code units (upstream/stitching.ts takes less). */
const MAX_BEFORE_CHARS = 500;

export type AttemptDeps = Pick<
  UpstreamAttemptOptions,
  "upstream" | "clock" | "counters" | "firstAudioMs" | "traced"
>;

/** Asks the upstream at once. `text`: all that is said in it. */
export function startAttempt(
  { upstream, clock, counters, firstAudioMs, traced }: AttemptDeps,
  asked: Pick<UpstreamAttemptOptions, "request" | "onNews"> & { readonly text: string },
): UpstreamAttempt {
  const { text, ...request } = asked;
  const range = { start: 0, end: text.length };
  counters.characters.requested += text.length;
  const nowMs = clock.nowMs();
  const stages = newStages(range, { arrivedMs: nowMs, segmentedMs: nowMs });
  return new UpstreamAttempt({
    upstream,
    clock,
    counters,
    firstAudioMs,
    traced,
    ...request,
    segment: { ...range, text, stages },
  });
}

/** Holds the upstream while too much of its audio waits for the client. */
export function boundWaiting(attempt: UpstreamAttempt): void {
  if (attempt.waitingBytes > HOLD_BYTES) attempt.hold();
  else if (attempt.waitingBytes <= READ_ON_BYTES) attempt.readOn();
}

type Shared = Omit<Extract<SynthesisRequest, { kind: "dialogue" }>, "kind" | "inputs" | "settings">;

/** What the address of a socket says of every request that is made for it. */
export function sharedRequest(
  settings: SocketSettings,
  locators: readonly DictionaryLocator[] | undefined,
): Shared {
  const { modelId, outputFormat, languageCode, seed, enableLogging } = settings;
  const { applyTextNormalization, applyLanguageTextNormalization } = settings;
  return {
    outputFormat,
    wantsTiming: true,
    modelId,
    ...(languageCode === undefined ? {} : { languageCode }),
    ...(seed === undefined ? {} : { seed }),
    ...(enableLogging === undefined ? {} : { enableLogging }),
    ...(applyTextNormalization === undefined ? {} : { applyTextNormalization }),
    ...(applyLanguageTextNormalization === undefined ? {} : { applyLanguageTextNormalization }),
    ...(locators === undefined ? {} : { locators }),
  };
}

/** What was said in a context or call so far, so that its next request goes on in intonation. */
export class SaidBefore {
  #text = "";

  /** This was asked of the upstream. */
  note(text: string): void {
    this.#text = (this.#text + text).slice(-MAX_BEFORE_CHARS);
  }

  /** What follows has nothing to do with it. */
  forget(): void {
    this.#text = "";
  }

  /** For the next request. `modelId` "": the upstream's own; `isLogged` false: zero retention. */
  stitch(modelId: string, isLogged: boolean): Stitch {
    return stitch({ modelId, isLogged, before: this.#text, behind: "", requestIds: [] });
  }
}
