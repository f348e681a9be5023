/**
 * What `doctor` says of the other speech services: whether each answers, takes its key, lists its voices, and has those that
 * one's own voices name.
 */
import type { Config } from "../../config.ts";
import { toGatewayError } from "../../errors.ts";
import { silentLog } from "../../kit/log.ts";
import { splitUpstreamVoice } from "../../protocol/upstream-voice.ts";
import type { ServiceConfig } from "../../upstream/services/service-config.ts";
import { createServiceUpstream } from "../../upstream/services/services.ts";
import type { UpstreamsFile } from "../../upstream/services/upstreams-file.ts";
import type { Io } from "../io.ts";
import { readServices } from "../serve/services.ts";
import { type CheckResult, resultWith, type Worry } from "./check-result.ts";

const MAX_SHOWN_VOICES = 10;
/** Longest wait for one of them. */
const ANSWER_MS = 5000;
/** Those that list every voice that they have. */
const LISTS_ALL: ReadonlySet<string> = new Set(["kokoro", "piper", "wyoming"]);
/** A mix of voices, or a speaker of one: its parts are not looked for. */
const COMPOSED = /[+#(]/;

/** Throws invalid_config where the gateway would not start with the file. */
export async function checkUpstreams(io: Io, config: Config): Promise<CheckResult> {
  const { services, voices } = readServices(config, io.env);
  const own = ownVoicesOf(voices);
  if (services.length === 0)
    return { status: "ok", detail: ["none beside the first one", ...own].join("; ") };
  const asked = await Promise.all(services.map((service) => askService(io, service, voices)));
  const worries = asked.flatMap((answer) => ("what" in answer ? [answer] : answer.worries));
  const works = asked.flatMap((answer) => ("what" in answer ? [] : [answer.detail]));
  const status = works.length === 0 ? "fail" : "warn";
  return works.length === 0 && worries.length > 0
    ? resultWith("none of them works", worries, status)
    : resultWith([...works, ...own].join("; "), worries, status);
}

/** Each with who speaks it, in their order. */
function ownVoicesOf(voices: UpstreamsFile["voices"]): readonly string[] {
  if (voices.length === 0) return [];
  const shown = voices
    .slice(0, MAX_SHOWN_VOICES)
    .map(({ name, upstreamVoices }) => `${name} (${upstreamVoices.join(", ")})`);
  const more = voices.length > shown.length ? ` and ${voices.length - shown.length} more` : "";
  return [`own voices: ${shown.join(", ")}${more}`];
}

/** What works of a service, and what of that does not; or why nothing does. */
type Answer = Worry | { readonly detail: string; readonly worries: readonly Worry[] };

async function askService(
  { clock }: Io,
  service: ServiceConfig,
  ownVoices: UpstreamsFile["voices"],
): Promise<Answer> {
  const where = `${service.name} (${service.service} at ${service.baseUrl})`;
  const upstream = createServiceUpstream(service, {
    maxQueued: 1,
    timeoutMs: ANSWER_MS,
    patienceMs: 0,
    log: silentLog,
    clock,
    onRead: () => undefined,
  });
  const startedMs = clock.nowMs();
  try {
    const status = await upstream.check();
    if (status === 401 || status === 403) return refusedKey(service, `${where} refuses its key (${status})`);
    if (status >= 500)
      return { what: `${where} answers ${status}`, fix: `look at the log of ${service.name}` };
    const answers = `${where} answers in ${Math.round(clock.nowMs() - startedMs)} ms`;
    const { voices, failure } = await upstream.voices();
    // What the small request asks for, some services give to everybody.
    if (failure?.code === "upstream_unauthorized") return refusedKey(service, `${where} refuses its key`);
    if (failure !== null) {
      const what = `${service.name} does not list its voices: ${failure.code}`;
      const fix =
        failure.code === "upstream_forbidden"
          ? `see the account of ${service.name}: its plan or its key may not have this`
          : `check the url of ${service.name}, it may be another service's`;
      return { detail: answers, worries: [{ what, fix }] };
    }
    const count =
      voices.length === 0 ? "" : `, with ${voices.length} ${voices.length === 1 ? "voice" : "voices"}`;
    const ids = voices.map(({ id }) => id);
    return { detail: `${answers}${count}`, worries: missingVoices(service, ids, ownVoices) };
  } catch (thrown) {
    const { code } = toGatewayError(thrown);
    return {
      what: `${where} does not answer: ${code}`,
      fix: `check the url of ${service.name} and the network`,
    };
  } finally {
    await upstream.close();
  }
}

function refusedKey({ name }: ServiceConfig, what: string): Worry {
  return { what, fix: `set another key for ${name}` };
}

/** Voices of one's own that name one which the service does not list. */
function missingVoices(
  { name, service }: ServiceConfig,
  listed: readonly string[],
  ownVoices: UpstreamsFile["voices"],
): Worry[] {
  if (!LISTS_ALL.has(service) || listed.length === 0) return [];
  return ownVoices.flatMap(({ name: own, upstreamVoices }) =>
    upstreamVoices.flatMap((voice) => {
      const named = splitUpstreamVoice(voice);
      if (named?.name !== name || COMPOSED.test(named.id) || listed.includes(named.id)) return [];
      const what = `voice ${own} names ${voice}, which ${name} does not list`;
      return [{ what, fix: `name another one for ${own}, such as ${name}:${listed[0]}` }];
    }),
  );
}
