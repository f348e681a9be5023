/** A whole gateway over two regions: a live session does not notice that one of them is gone, and /metrics shows it. */
import { describe, expect, it } from "vitest";
import { type Config, SETTINGS } from "../../../src/config.ts";
import { startGateway } from "../../../src/gateway.ts";
import { refusal, speaking, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { TestClient } from "../../helpers/start-gateway.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

const DEFAULTS = Object.fromEntries(SETTINGS.map((row) => [row.key, row.default])) as unknown as Config;

describe("a gateway over two regions", () => {
  it("speaks with the second while the first fails, without an error, and counts it", async () => {
    await using first = await startFakeUpstream(() => refusal(503, "down"));
    await using second = await startFakeUpstream(speaking());
    const gateway = await startGateway({
      config: { ...DEFAULTS, port: 0, voice: "tone-a" },
      upstreamBaseUrl: [first.url, second.url],
      upstreamKey: "",
      log: watchedLog,
    });
    try {
      const wsUrl = gateway.url.replace("http", "ws");
      await using client = await TestClient.connect({ wsUrl }, "/live/s?format=pcm_8000&pace=burst");
      client.send({ type: "speak", text: "Hello there." });
      expect(await client.next("utterance.done")).toMatchObject({ outcome: "done" });
      expect(client.eventsOf("error")).toEqual([]);
      expect(client.frames.length).toBeGreaterThan(0);
      const passed = await fetch(`${gateway.url}/v1/models`);
      expect(passed.status).toBe(200);
      const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
      const [failing, working] = [new URL(first.url).host, new URL(second.url).host];
      expect(metrics).toContain(`voicewire_upstream_region_failovers_total{region="${failing}"} 1\n`);
      expect(metrics).toContain(`voicewire_upstream_region_healthy{region="${failing}"} 0\n`);
      expect(metrics).toContain(`voicewire_upstream_region_healthy{region="${working}"} 1\n`);
      expect(metrics).toMatch(
        new RegExp(`voicewire_upstream_region_requests_total\\{region="${working}"\\} [2-9]`),
      );
    } finally {
      await gateway.close();
    }
  });
});
