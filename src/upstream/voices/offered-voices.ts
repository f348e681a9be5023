/** Every voice that clients may name: one's own, the first upstream's, and those of the other services that list theirs. */
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { OfferedVoices, UnlistedUpstream } from "../../protocol/voice-list.ts";
import type { ServiceUpstream } from "../services/service-upstream.ts";
import type { VoiceConfig } from "./voice-config.ts";

export interface OfferedVoicesOptions {
  /** The first upstream's list. Rejects with what it answered. */
  readonly first: () => Promise<readonly FirstVoice[]>;
  readonly services: readonly Pick<ServiceUpstream, "name" | "voices">[];
  readonly own: readonly VoiceConfig[];
  readonly clock: Clock;
}

/** Longest wait for the first upstream's list, ms; other services' have deadlines of their own. */
const FIRST_LIST_MS = 3000;

export interface FirstVoice {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Own ones first. What can't be listed costs its own part, and is named. Does not reject. */
export async function offeredVoices(options: OfferedVoicesOptions): Promise<OfferedVoices> {
  const { services, own } = options;
  const parts = await Promise.all([firstPart(options), ...services.map(servicePart)]);
  const names = new Set(own.map(({ name }) => name));
  const ownVoices = own.map(({ name, upstreamVoices }) => ({
    ...{ voice_id: name, name, labels: {}, upstream: null },
    spoken_by: upstreamVoices,
  }));
  // Whoever names an id of the first upstream that one's own has taken gets one's own.
  const others = parts.flatMap(({ voices }) => voices).filter(({ voice_id }) => !names.has(voice_id));
  return { voices: [...ownVoices, ...others], unlisted: parts.flatMap(({ unlisted }) => unlisted) };
}

async function firstPart({ first, clock }: OfferedVoicesOptions): Promise<OfferedVoices> {
  try {
    const voices = (await inTime(first(), clock)).map(({ id, name, labels }) => ({
      ...{ voice_id: id, name: name || id, labels, upstream: null },
    }));
    return { voices, unlisted: [] };
  } catch (thrown) {
    return { voices: [], unlisted: [unlisted(null, toGatewayError(thrown))] };
  }
}

async function servicePart(service: OfferedVoicesOptions["services"][number]): Promise<OfferedVoices> {
  const { name: upstream } = service;
  const { voices, failure } = await service.voices();
  return {
    voices: voices.map(({ id, name, labels }) => ({
      ...{ voice_id: `${upstream}:${id}`, name: name || id, labels, upstream },
    })),
    unlisted: failure === null ? [] : [unlisted(upstream, failure)],
  };
}

function unlisted(upstream: string | null, { code, message }: GatewayError): UnlistedUpstream {
  return { upstream, code, message };
}

/** Rejects with upstream_timeout where it takes too long. */
function inTime<T>(list: Promise<T>, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.at(clock.nowMs() + FIRST_LIST_MS, () => {
      const what = `The upstream did not list its voices for ${FIRST_LIST_MS} ms`;
      reject(new GatewayError("upstream_timeout", what));
    });
    list.then(resolve, reject).finally(() => timer.cancel());
  });
}
