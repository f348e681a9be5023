/** A gateway that can't start leaves nothing running. */
import { expect, it } from "vitest";
import type { Config } from "../../src/config.ts";
import { startGateway } from "../../src/gateway.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { DEFAULTS, gatewayAt } from "../helpers/start-gateway.ts";
import { watchedLog } from "../helpers/watched-log.ts";

/** No encoder takes it. */
const NO_RATE = "0" as string as Config["opusBitrateKbps"];

it("encoders that can't start end the upstream's checks, too", async () => {
  const clock = new FakeClock();
  const starting = startGateway({
    config: { ...DEFAULTS, port: 0, opusBitrateKbps: NO_RATE },
    // Of several regions each is checked from the beginning on.
    upstreamBaseUrl: ["http://127.0.0.1:9", "http://127.0.0.1:10"],
    upstreamKey: "",
    log: watchedLog,
    clock,
  });
  expect(clock.pending).toBeGreaterThan(0);
  await expect(starting).rejects.toMatchObject({ code: "encoder_failed" });
  expect(clock.pending).toBe(0);
});

it.each<[string, Partial<Config>, object]>([
  ["a path of the proxy", { proxyPaths: "GET nowhere" }, { field: "proxy-paths" }],
  ["a certificate without its key", { tlsCert: "cert.pem" }, { field: "tls-key" }],
  ["an origin", { allowedOrigins: "nowhere" }, { field: "allow-origin" }],
  ["a way of cleaning texts", { clean: "everything" }, { field: "clean" }],
  ["an encoder", { opusBitrateKbps: NO_RATE }, { code: "encoder_failed" }],
  ["a port", { host: "192.0.2.1", insecure: true }, { code: "port_in_use" }],
  ["the operations port", { opsHost: "192.0.2.1", opsPort: 9 }, { code: "port_in_use" }],
])("%s that can't be used ends the watch of the key file", async (_name, settings, error) => {
  using keys = new TestKeys();
  const clock = new FakeClock();
  const starting = gatewayAt("http://127.0.0.1:1", { keysFile: keys.path, ...settings }, { clock });
  await expect(starting).rejects.toMatchObject(error);
  expect(clock.pending).toBe(0);
});

it.each([
  ["public-url", { twilioAuthToken: "12345" }],
  ["carrier-token", { carrierToken: "telnyx=" }],
  ["carriers", { carriers: "pigeon" }],
  ["audiosocket-allow", { audiosocketAllow: "10.0.0.0/8,home" }],
])("%s that can't be used is refused", async (field, settings) => {
  await expect(gatewayAt("http://127.0.0.1:1", settings)).rejects.toMatchObject({
    code: "invalid_config",
    field,
  });
});
