/** What /metrics says of regions. */
import { describe, expect, it } from "vitest";
import { createCounters } from "../../../src/metrics/counters.ts";
import { createExposition, type RegionFigures } from "../../../src/metrics/prometheus.ts";

describe("the metrics of regions", () => {
  it("are one series each, read when they are asked for", async () => {
    let regions: readonly RegionFigures[] = [
      { name: "us", isHealthy: false, requests: 7, failovers: 3, limits: [{ group: 'a"b', limit: 5 }] },
      {
        name: "eu",
        isHealthy: true,
        requests: 3,
        failovers: 0,
        limits: [{ group: "m".repeat(100), limit: 1 }],
      },
    ];
    const render = createExposition(createCounters(), {
      versions: { version: "0", node: "v20" },
      utterances: () => 0,
      sendQueues: () => ({ bytes: 0, worstBytes: 0 }),
      isDraining: () => false,
      sessions: () => 0,
      inboxBytes: () => 0,
      soundsBytes: () => 0,
      queuedTextBytes: () => 0,
      receivedBytes: () => 0,
      waitingAudioBytes: () => 0,
      recentAudioBytes: () => 0,
      upstreamOpen: () => 0,
      upstreamQueued: () => 0,
      upstreamRegions: () => regions,
      phrases: () => null,
      serviceHangs: () => null,
      certificateEnd: () => null,
      isInsecure: false,
      door: () => ({
        refusals: new Map(),
        limits: { callers: 0, addresses: 0 },
        hasBrokenKeys: false,
        lostAuditLines: 0,
      }),
    });
    const lines = async () =>
      (await render()).split("\n").filter((line) => /^voicewire_upstream_(region|limit)/.test(line));
    expect(await lines()).toEqual([
      'voicewire_upstream_region_requests_total{region="us"} 7',
      'voicewire_upstream_region_requests_total{region="eu"} 3',
      'voicewire_upstream_region_failovers_total{region="us"} 3',
      'voicewire_upstream_region_failovers_total{region="eu"} 0',
      'voicewire_upstream_region_healthy{region="us"} 0',
      'voicewire_upstream_region_healthy{region="eu"} 1',
      'voicewire_upstream_limit{region="us",group="a\\"b"} 5',
      `voicewire_upstream_limit{region="eu",group="${"m".repeat(64)}"} 1`,
    ]);
    regions = [{ name: "us", isHealthy: true, requests: 8, failovers: 3, limits: [] }];
    expect(await lines()).toEqual([
      'voicewire_upstream_region_requests_total{region="us"} 8',
      'voicewire_upstream_region_failovers_total{region="us"} 3',
      'voicewire_upstream_region_healthy{region="us"} 1',
    ]);
  });
});
