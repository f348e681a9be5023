/** An upstream of one scripted service, and the gateway in front of several. */
import { systemClock } from "../../../src/kit/clock.ts";
import type { Logger } from "../../../src/kit/log.ts";
import type { ServiceConfig } from "../../../src/upstream/services/service-config.ts";
import type { ServiceUpstream } from "../../../src/upstream/services/service-upstream.ts";
import { createServiceUpstream } from "../../../src/upstream/services/services.ts";
import type { SpeechRequest, SynthesisChunk } from "../../../src/upstream/types.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { Recorder } from "../../unit/upstream/rig.ts";

export const TEXT = "The quick brown fox jumps over the lazy dog, and sleeps.";

export function speech(voiceId: string, more: Partial<SpeechRequest> = {}): SpeechRequest {
  return { kind: "speech", voiceId, text: TEXT, outputFormat: "pcm_24000", wantsTiming: true, ...more };
}

export function configOf(service: string, baseUrl: string, more: Partial<ServiceConfig> = {}): ServiceConfig {
  return {
    name: service,
    service,
    baseUrl,
    key: "",
    model: "",
    sampleRate: null,
    voices: [],
    maxOpen: null,
    ...more,
  };
}

export type TestService = ServiceUpstream & AsyncDisposable;

export function serviceAt(
  config: ServiceConfig,
  timeoutMs = 10_000,
  patienceMs = 0,
  log: Logger = watchedLog,
): TestService {
  const upstream = createServiceUpstream(config, {
    maxQueued: 16,
    timeoutMs,
    patienceMs,
    log,
    clock: systemClock,
    onRead: () => undefined,
  });
  return Object.assign(upstream, { [Symbol.asyncDispose]: () => upstream.close() });
}

/** Asks, and waits for the end or the error. */
export async function asked(upstream: ServiceUpstream, request: SpeechRequest): Promise<Recorder> {
  const recorder = new Recorder();
  upstream.open(request, recorder);
  return recorder.over();
}

export interface CharacterTime {
  readonly character: string;
  readonly start: number;
  readonly end: number;
}

export function charactersOf(chunks: readonly SynthesisChunk[]): CharacterTime[] {
  return chunks.flatMap(({ alignment }) =>
    (alignment?.characters ?? []).map((character, index) => ({
      character,
      start: alignment?.character_start_times_seconds[index] ?? Number.NaN,
      end: alignment?.character_end_times_seconds[index] ?? Number.NaN,
    })),
  );
}

/** Where each of the words is in time, as their characters say. Fails where the characters are not those of the text. */
export function wordTimes(recorder: Recorder, text: string): { text: string; start: number; end: number }[] {
  const characters = charactersOf(recorder.chunks);
  // The silence before the first word may be a space that is not in the text.
  const lead = characters.length > 0 && characters[0]?.character === " " && !text.startsWith(" ") ? 1 : 0;
  const own = characters.slice(lead);
  const joined = own.map(({ character }) => character).join("");
  if (joined !== text) throw new Error(`The characters are ${JSON.stringify(joined)}, expected the text`);
  let at = 0;
  const starts = own.map(({ character }) => {
    const start = at;
    at += character.length;
    return start;
  });
  return [...text.matchAll(/[\p{L}\p{N}']+/gu)].map(({ 0: word, index }) => {
    const first = own[starts.indexOf(index)];
    const last = own[starts.findLastIndex((start) => start < index + word.length)];
    return { text: word, start: first?.start ?? Number.NaN, end: last?.end ?? Number.NaN };
  });
}
