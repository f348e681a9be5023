/** On which addresses the gateway starts without keys: src/access/binding.ts. */
import { describe, expect, it } from "vitest";
import { checkBinding, InsecureWarning, isInsecure } from "../../../src/access/binding.ts";
import { startWithUpstream } from "../../../src/cli/serve/start.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import { silentLog } from "../../../src/kit/log.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { DEFAULTS } from "../../helpers/start-gateway.ts";

describe("checkBinding", () => {
  it.each(["127.0.0.1", "127.1.2.3", "::1", "localhost"])("lets %s be listened on", (host) => {
    expect(() => checkBinding({ host, keysFile: "", insecure: false })).not.toThrow();
  });

  it.each(["0.0.0.0", "::", "192.0.2.7", "gateway.lan"])("refuses %s, and says how to go on", (host) => {
    expect(() => checkBinding({ host, keysFile: "", insecure: false })).toThrow(/--keys-file.*--insecure/);
    expect(() => checkBinding({ host, keysFile: "", insecure: true })).not.toThrow();
    expect(() => checkBinding({ host, keysFile: "keys.json", insecure: false })).not.toThrow();
    expect(isInsecure({ host, keysFile: "keys.json" })).toBe(false);
  });

  it("is asked before anything is started", async () => {
    const config = { ...DEFAULTS, port: 0, host: "0.0.0.0" };
    const started = startWithUpstream({ config, log: silentLog, clock: systemClock, env: {} });
    await expect(started).rejects.toMatchObject({ code: "invalid_config", field: "host" });
  });
});

describe("InsecureWarning", () => {
  it("comes at the start and each hour until it is closed", () => {
    const clock = new FakeClock();
    const lines: string[] = [];
    const log = { ...silentLog, warn: (_fields: object, message: string) => void lines.push(message) };
    const warning = new InsecureWarning({ host: "0.0.0.0", log, clock });
    expect(lines).toHaveLength(1);
    clock.advance(3 * 3_600_000);
    expect(lines).toHaveLength(4);
    warning.close();
    warning.close();
    clock.advance(3_600_000);
    expect(lines).toHaveLength(4);
    expect(lines[0]).toContain("anybody who reaches this address");
  });
});
