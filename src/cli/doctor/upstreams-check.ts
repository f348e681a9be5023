/** What `doctor` says of the other speech services: whether each answers, and takes its key. */
import type { Config } from "../../config.ts";
import { toGatewayError } from "../../errors.ts";
import { silentLog } from "../../kit/log.ts";
import type { ServiceConfig } from "../../upstream/services/service-config.ts";
import { createServiceUpstream } from "../../upstream/services/services.ts";
import type { UpstreamsFile } from "../../upstream/services/upstreams-file.ts";
import type { Io } from "../io.ts";
import { readServices } from "../serve/services.ts";
import { type CheckResult, resultWith, type Worry } from "./check-result.ts";

const MAX_SHOWN_VOICES = 10;
/** Longest wait for one of them. */
const ANSWER_MS = 5000;

/** Throws invalid_config where the gateway would not start with the file. */
export async function checkUpstreams(io: Io, config: Config): Promise<CheckResult> {
  const { services, voices } = readServices(config, io.env);
  const own = ownVoicesOf(voices);
  if (services.length === 0)
    return { status: "ok", detail: ["none beside the first one", ...own].join("; ") };
  const asked = await Promise.all(services.map((service) => askService(io, service)));
  const worries = asked.flatMap((answer) => ("what" in answer ? [answer] : []));
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

async function askService(
  { clock }: Io,
  service: ServiceConfig,
): Promise<Worry | { readonly detail: string }> {
  const where = `${service.name}: (${service.service} at ${service.baseUrl})`;
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
    if (status === 401 || status === 403)
      return { what: `${where} refuses its key (${status})`, fix: `set another key for ${service.name}` };
    if (status >= 500)
      return { what: `${where} answers ${status}`, fix: `look at the log of ${service.name}` };
    return { detail: `${where} answers in ${Math.round(clock.nowMs() - startedMs)} ms` };
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
