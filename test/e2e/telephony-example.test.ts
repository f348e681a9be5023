/** examples/telephony as its README says: a whole call with a scripted caller. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startService } from "../../src/service/service.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

const BRIDGE = join(import.meta.dirname, "../../examples/telephony/bridge.mjs");
const LISTEN = join(import.meta.dirname, "../../examples/telephony/listen.mjs");

async function simulate(url: string, more: NodeJS.ProcessEnv = {}): Promise<{ code: number; said: string }> {
  const env = { ...process.env, VOICEWIRE_URL: url, ...more };
  const child = spawn(process.execPath, [BRIDGE, "--simulate"], { env, stdio: ["ignore", "pipe", "pipe"] });
  const said: string[] = [];
  child.stdout.on("data", (piece: Buffer) => said.push(piece.toString()));
  child.stderr.on("data", (piece: Buffer) => said.push(piece.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, said: said.join("") };
}

it.concurrent.each([
  ["without keys", false],
  ["with keys", true],
])(
  "%s answers, stops at a key, says what was heard, says goodbye and hangs up",
  { timeout: 60_000 },
  async (_name, hasKeys) => {
    const admin = { sessions: ["*"], allow: ["admin"] };
    using keys = new TestKeys({ app: { grants: admin } });
    const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, key: "gateway-key" });
    try {
      const settings = { voice: "", ...(hasKeys ? { keysFile: keys.path } : {}) };
      await using gateway = await gatewayAt(service.url, settings, { upstreamKey: "gateway-key" });
      const { code, said } = await simulate(gateway.wsUrl, hasKeys ? { VOICEWIRE_KEY: keys.key } : {});
      expect(said).toMatch(/call started/);
      // How far it got until the key came is a matter of time.
      expect(said).toMatch(/heard "Hello\.[^"]*" \(\d+ ms, by mark\)/);
      expect(said).toMatch(/heard "You[^"]*" \(\d+ ms, by mark\)/);
      expect(said).toMatch(/heard \d{4} ms of speech; 2 times it was cut off/);
      expect(said).toMatch(/call ended/);
      expect(code).toBe(0);
      const headers = { authorization: `Bearer ${tokenFor(admin)}` };
      const metrics = await (await fetch(`${gateway.opsUrl}/metrics`, { headers })).text();
      expect(metrics).toContain('voicewire_call_odd_messages_total{carrier="twilio"} 0');
    } finally {
      await service.close();
    }
  },
);

it.concurrent("listens to a session with a key, and says how much it has heard", {
  timeout: 60_000,
}, async () => {
  using keys = new TestKeys();
  const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, key: "gateway-key" });
  try {
    const settings = { voice: "", keysFile: keys.path };
    await using gateway = await gatewayAt(service.url, settings, { upstreamKey: "gateway-key" });
    const env = { ...process.env, VOICEWIRE_URL: gateway.url, VOICEWIRE_KEY: keys.key };
    const child = spawn(process.execPath, [LISTEN, "demo"], { env, stdio: ["ignore", "pipe", "inherit"] });
    const said: string[] = [];
    child.stdout.on("data", (piece: Buffer) => said.push(piece.toString()));
    const over = once(child, "close");
    const headers = { authorization: `Bearer ${keys.key}` };
    const path = "/live/demo?role=speaker&events=call";
    await using controller = await TestClient.connect(gateway, path, { headers });
    await controller.next("call");
    controller.send({ type: "speak", text: "This is heard in the call, and then it is hung up." });
    await controller.next("utterance.done");
    await until("it says so", () => /[1-9]\.\d s of speech\n/.test(said.join("")));
    controller.send({ type: "hangup" });
    expect(await over).toEqual([0, null]);
    expect(said.join("")).toContain("The call is over: 1000");
  } finally {
    await service.close();
  }
});

it.concurrent("hangs up where the voice fails", { timeout: 60_000 }, async () => {
  const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, key: "another-key" });
  try {
    await using gateway = await gatewayAt(service.url, { voice: "" }, { upstreamKey: "gateway-key" });
    const { code, said } = await simulate(gateway.wsUrl);
    expect(said).toContain("upstream_unauthorized");
    expect(said).toContain("call ended");
    expect(code).toBe(0);
  } finally {
    await service.close();
  }
});

it.concurrent("answers nothing that a browser would run", async () => {
  const env = { ...process.env, VOICEWIRE_URL: "ws://127.0.0.1:9", PORT: "0" };
  const child = spawn(process.execPath, [BRIDGE], { env, stdio: ["ignore", "pipe", "ignore"] });
  try {
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const url = /http:\S+\/answer/.exec(line.toString())?.[0] ?? "";
    const body = new URLSearchParams({ CallSid: `CA${"0".repeat(32)}` });
    const answers = [await fetch(url, { method: "POST", body }), await fetch(new URL("/", url))];
    expect(answers.map(({ status }) => status)).toEqual([200, 404]);
    for (const { headers } of answers) {
      expect(Object.fromEntries(headers)).toMatchObject({
        "content-security-policy": "sandbox; default-src 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
      });
    }
  } finally {
    child.kill();
  }
});

it.concurrent("says what to do where there is no gateway", async () => {
  const { code, said } = await simulate("ws://127.0.0.1:9");
  expect(said).toContain("Start one with: npm start");
  expect(code).toBe(1);
});
