/** How others reach a gateway without keys, and that it does not start so by mistake: src/access/binding.ts. */
import { describe, expect, it } from "vitest";
import {
  type Binding,
  checkBinding,
  InsecureWarning,
  openWays,
  remedyOf,
} from "../../../src/access/binding.ts";
import { startWithUpstream } from "../../../src/cli/serve/start.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { DEFAULTS } from "../../helpers/start-gateway.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

const LOOPBACK: Binding = { host: "127.0.0.1", opsHost: "127.0.0.1", trustedProxies: "", keysFile: "" };
/** Each of which brings others. */
const OPEN: readonly (readonly [field: string, settings: Partial<Binding>])[] = [
  ...["0.0.0.0", "::", "192.0.2.7", "gateway.lan"].map((host) => ["host", { host }] as const),
  ["ops-host", { opsHost: "0.0.0.0" }],
  ["ops-host", { opsHost: "10.0.0.11" }],
  ["trusted-proxies", { trustedProxies: "127.0.0.1" }],
];

describe("checkBinding", () => {
  it.each(["127.0.0.1", "127.1.2.3", "::1", "localhost"])("lets %s be listened on", (host) => {
    const binding = { ...LOOPBACK, host, opsHost: host, insecure: false };
    expect(() => checkBinding(binding)).not.toThrow();
  });

  it.each(OPEN)("refuses %s %j, and says how to go on", (field, settings) => {
    const binding = { ...LOOPBACK, ...settings };
    expect(() => checkBinding({ ...binding, insecure: false })).toThrow(
      expect.objectContaining({
        code: "invalid_config",
        field,
        message: expect.stringMatching(/--keys-file.*--insecure/),
      }),
    );
    expect(() => checkBinding({ ...binding, insecure: true })).not.toThrow();
    expect(() => checkBinding({ ...binding, keysFile: "keys.json", insecure: false })).not.toThrow();
    expect(openWays({ ...binding, keysFile: "keys.json" })).toEqual([]);
  });

  it("names all ways by which others come, and what closes each", () => {
    const binding = { ...LOOPBACK, host: "0.0.0.0", opsHost: "10.0.0.11", trustedProxies: "10.0.0.1" };
    const ways = openWays(binding);
    expect(ways.map(({ setting }) => setting)).toEqual(["host", "trusted-proxies", "ops-host"]);
    for (const { remedy } of ways) expect(remedyOf(ways)).toContain(remedy);
    for (const { consequence } of ways) {
      const refused = () => checkBinding({ ...binding, insecure: false });
      expect(refused).toThrow(consequence);
    }
  });

  it.each([{ host: "0.0.0.0" }, { opsHost: "0.0.0.0" }, { trustedProxies: "127.0.0.1" }])(
    "is asked before anything is started: %j",
    async (settings) => {
      const config = { ...DEFAULTS, port: 0, ...settings };
      const started = startWithUpstream({ config, log: watchedLog, clock: systemClock, env: {} });
      await expect(started).rejects.toMatchObject({ code: "invalid_config" });
    },
  );
});

describe("InsecureWarning", () => {
  it("says at the start and each hour who may do what, until it is closed", () => {
    const clock = new FakeClock();
    const lines: string[] = [];
    const log = { ...watchedLog, warn: (_fields: object, message: string) => void lines.push(message) };
    const ways = openWays({ ...LOOPBACK, host: "0.0.0.0", opsHost: "0.0.0.0" });
    const warning = new InsecureWarning({ ways, log, clock });
    expect(lines).toEqual([
      expect.stringMatching(/^Insecure: whoever reaches 0\.0\.0\.0 may .* speak/),
      expect.stringMatching(/^Insecure: whoever reaches the operations port .* may read what is said/),
    ]);
    clock.advance(3 * 3_600_000);
    expect(lines).toHaveLength(8);
    warning.close();
    warning.close();
    clock.advance(3_600_000);
    expect(lines).toHaveLength(8);
  });
});
