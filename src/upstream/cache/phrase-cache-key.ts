/** What makes two requests the same phrase for the phrase cache: everything that is sent, and nothing else. */
import { createHash } from "node:crypto";
import { GatewayError } from "../../errors.ts";
import type { SynthesisRequest } from "../types.ts";
import { keyOfOptions } from "../vendor-options.ts";
import { wireRequest } from "../vendors/vendor-request.ts";

export interface PhraseKeys {
  /** Key of the request itself. */
  readonly own: string;
  /** Whose answers serve it, the best first: speech with timing serves who wants none, and not the other way round. */
  readonly serving: readonly string[];
  /** Whose answer is no longer needed once there is one for this; null: none. */
  readonly replaced: string | null;
}

/**
 * null: not to be kept or shared. That is zero retention (`enable_logging=false`), a text over `maxChars` UTF-16 code
 * units, and what can't be sent at all, which the upstream's client is to say.
 *
 * The key is a digest of the request as it goes over the wire, so that no field that shapes the sound can be left out.
 * `priority` is not sent; whether there is timing is put behind the digest.
 */
export function phraseKeys(request: SynthesisRequest, maxChars: number): PhraseKeys | null {
  if (request.enableLogging === false || charsOf(request) > maxChars) return null;
  const digest = digestOf(request);
  if (digest === null) return null;
  const timed = `${digest}+timing`;
  return request.wantsTiming
    ? { own: timed, serving: [timed], replaced: digest }
    : { own: digest, serving: [timed, digest], replaced: null };
}

/** Text to be spoken, UTF-16 code units. */
function charsOf(request: SynthesisRequest): number {
  if (request.kind === "speech") return request.text.length;
  return request.inputs.reduce((sum, { text }) => sum + text.length, 0);
}

/** A hash, so that the cache's index does not hold texts. */
function digestOf(request: SynthesisRequest): string | null {
  try {
    // Also what is for other upstreams: they may have the voice.
    const { vendorOptions, ...rest } = request;
    const { path, body } = wireRequest(canonical(rest));
    return createHash("sha256")
      .update(`${path}\n${body}\n${keyOfOptions(vendorOptions)}`)
      .digest("base64");
  } catch (thrown) {
    if (thrown instanceof GatewayError) return null;
    throw thrown;
  }
}

/** Settings in one order, one form of each thing that may be said in two. */
function canonical(request: SynthesisRequest): SynthesisRequest {
  const { enableLogging: _isLogged, ...rest } = { ...request, wantsTiming: false };
  if (rest.kind === "dialogue") {
    return rest.settings === undefined ? rest : { ...rest, settings: sorted(rest.settings) };
  }
  return rest.voiceSettings === undefined ? rest : { ...rest, voiceSettings: sorted(rest.voiceSettings) };
}

function sorted<T extends object>(settings: T): T {
  const entries = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries) as T;
}
