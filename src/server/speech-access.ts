/** What a caller's grants mean for speech that is asked of the upstream itself: which it may have, and what is set for it. */
import { isDeepStrictEqual } from "node:util";
import { forbidden } from "../access/access-error.ts";
import { isRefusal } from "../access/audit.ts";
import type { Caller } from "../access/caller.ts";
import type { Door } from "../access/door.ts";
import type { WaitingText } from "../vendor-sockets/ports.ts";

interface AskedVoices {
  readonly voiceIds: readonly string[];
  /** "": the upstream's own, whichever that is; null: there is none, or it is checked elsewhere. */
  readonly modelId: string | null;
  /** As the upstream names it; null: it is not audio of a format that the client chose. */
  readonly outputFormat: string | null;
}

/** What the vendor takes for a text that names no model. */
const DEFAULT_MODEL = "eleven_multilingual_v2";

/** Throws forbidden. */
export function mustHaveSpeech(caller: Caller, { voiceIds, modelId, outputFormat }: AskedVoices): void {
  caller.mustUse({ voiceIds, ...(modelId === null ? {} : { modelId }) });
  if (outputFormat !== null) caller.mustHear(outputFormat);
}

/**
 * The model that the upstream is asked for; "": its own. `asked`: what the client or the gateway's settings name, or "". Who
 * may have some models only gets one that is named: another upstream than the vendor, or a voice, may have another default.
 */
export function modelFor(caller: Caller, asked: string): string {
  const { model_id: named = asked } = caller.speechSettings;
  return named === "" && caller.limits("models") ? DEFAULT_MODEL : named;
}

/** Throws forbidden where the key, as it is now, sets other options than those that the caller's speech began with. */
export function mustSetSame(now: Caller, { speechSettings }: Caller): void {
  if (isDeepStrictEqual(now.speechSettings, speechSettings)) return;
  throw forbidden("Your key sets other options of speech than before");
}

/** As requests to the upstream have them. */
export interface PinnedOptions {
  readonly modelId?: string;
  readonly languageCode?: string;
  readonly seed?: number;
  readonly applyTextNormalization?: "auto" | "on" | "off";
  readonly enableLogging?: boolean;
}

export interface Asking {
  readonly door: Door;
  readonly caller: Caller;
  /** As the audit log names it. */
  readonly surface: string;
  readonly address: string;
  /** Default: it is about no session. */
  readonly sessionId?: string;
}

/** What `check` gives; where it refuses the caller something, that stands in the audit log, and is counted. */
export function audited<T>({ door, caller, ...place }: Asking, check: () => T): T {
  try {
    return check();
  } catch (thrown) {
    if (isRefusal(thrown)) door.audit.refused({ ...place, thrown, caller });
    throw thrown;
  }
}

/** A text that waits to be spoken; where there is no room for it, that stands in the audit log. */
export function waitingText(asking: Asking): WaitingText {
  const text = asking.door.limits.waitingText();
  return {
    add: (characters) => audited(asking, () => text.add(characters)),
    takeBack: (characters) => text.takeBack(characters),
    end: () => text.end(),
  };
}

/** What the key or token sets for every request but its voice; it wins over the client's. */
export function pinnedOptions({ speechSettings }: Caller): PinnedOptions {
  const { model_id, language_code, seed, apply_text_normalization, enable_logging } = speechSettings;
  return {
    ...(model_id === undefined ? {} : { modelId: model_id }),
    ...(language_code === undefined ? {} : { languageCode: language_code }),
    ...(seed === undefined ? {} : { seed }),
    ...(apply_text_normalization === undefined ? {} : { applyTextNormalization: apply_text_normalization }),
    ...(enable_logging === undefined ? {} : { enableLogging: enable_logging }),
  };
}
