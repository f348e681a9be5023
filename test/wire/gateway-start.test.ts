/** A gateway that can't start leaves nothing running. */
import { expect, it } from "vitest";
import { startGateway } from "../../src/gateway.ts";
import { silentLog } from "../../src/kit/log.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { DEFAULTS } from "../helpers/start-gateway.ts";

it("encoders that can't start end the upstream's checks, too", async () => {
  const clock = new FakeClock();
  const starting = startGateway({
    // No encoder takes such a rate.
    config: { ...DEFAULTS, port: 0, opusBitrateKbps: "0" },
    // Of several regions each is checked from the beginning on.
    upstreamBaseUrl: ["http://127.0.0.1:9", "http://127.0.0.1:10"],
    upstreamKey: "",
    log: silentLog,
    clock,
  });
  expect(clock.pending).toBeGreaterThan(0);
  await expect(starting).rejects.toMatchObject({ code: "encoder_failed" });
  expect(clock.pending).toBe(0);
});
