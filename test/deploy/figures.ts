/** Metrics of a gateway to which nothing has happened yet; with everything on, where it is not said otherwise. */
import { dirname, join } from "node:path";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { tracingSettings } from "../../src/tracing/tracing-settings.ts";
import { CertificateFolder } from "../helpers/certificate-files.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";

/** As Prometheus reads those of a gateway with nothing on. */
export async function plainMetricsText(): Promise<string> {
  await using upstream = await startFakeUpstream();
  await using gateway = await gatewayAt(upstream.url);
  return await (await fetch(`${gateway.opsUrl}/metrics`)).text();
}

/** As Prometheus reads them. */
export async function metricsText(): Promise<string> {
  await using upstream = await startFakeUpstream();
  using files = new CertificateFolder();
  const folder = dirname(files.settings.tlsCert);
  const bus = new MemoryHub({ clock: systemClock }).open();
  await using gateway = await gatewayAt(
    upstream.url,
    { phraseCacheMb: 1, record: folder, ledger: join(folder, "ledger.jsonl"), ...files.settings },
    {
      cluster: { nodeName: "node-1", connect: () => Promise.resolve(bus) },
      tracing: tracingSettings("http://127.0.0.1:9/v1/traces", {}),
      service: { hangs: 0 },
      passesFaults: true,
    },
  );
  return await (await fetch(`${gateway.opsUrl}/metrics`)).text();
}

/** Names of all, with those of histograms' series. */
export function namesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [, name = "", type = ""] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name);
    if (type !== "histogram") continue;
    for (const part of ["bucket", "sum", "count"]) names.add(`${name}_${part}`);
  }
  return names;
}

/** What an expression of PromQL asks for. */
export function metricsIn(expr: string): string[] {
  const bare = expr
    .replace(/"[^"]*"/g, "")
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, "");
  return [...bare.matchAll(/\b(?:voicewire|nodejs|process)_\w+/g)].map(([name]) => name);
}
