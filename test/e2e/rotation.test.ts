/** What an operator changes under way: keys and the certificate are replaced by new ones while a hundred sessions speak. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { type Connection, connect, type Event } from "../../src/client/index.ts";
import { CertificateFolder, PAIRS, shownName } from "../helpers/certificate-files.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { LISTENER, SIGNING, SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { trustTestCertificate } from "../helpers/test-certificate.ts";
import { until } from "../helpers/until.ts";

const SESSIONS = 100;
/** 12 s of sound: the old key ends 4 s after the new one has come, and the machine may be busy. */
const SOUND_MS = 12_000;
const MS_PER_CHAR = 20;
const TEXT = "a".repeat(SOUND_MS / MS_PER_CHAR);
/** The machine may be busy. */
const PATIENT = { deadlineMs: 20_000 };
vi.setConfig({ testTimeout: 60_000 });

const keys = new TestKeys();
const files = new CertificateFolder();
const NEW_KEY = { id: "app-2", ...SIGNING };
let trust: Disposable;
let upstream: FakeUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  trust = trustTestCertificate();
  upstream = await startFakeUpstream(speaking({ msPerChar: MS_PER_CHAR }));
  gateway = await gatewayAt(upstream.url, { trimMs: 0, keysFile: keys.path, ...files.settings });
});

afterAll(async () => {
  await gateway?.close();
  await upstream?.[Symbol.asyncDispose]();
  trust[Symbol.dispose]();
  files[Symbol.dispose]();
  keys[Symbol.dispose]();
});

interface Speaker {
  readonly connection: Connection;
  readonly events: Event[];
  readonly frames: Uint8Array[];
  readonly audio: () => Buffer;
}

/** `kid`: the key that signs from now on. Each session is of a subject of its own. */
async function join(
  session: string,
  kid: () => string,
  pace: "realtime" | "burst" = "realtime",
): Promise<Speaker> {
  const events: Event[] = [];
  const frames: Uint8Array[] = [];
  const connection = await connect({
    baseUrl: gateway.url,
    session,
    settings: { format: "pcm_8000", frame_ms: 100, events: ["segments"], pace },
    WebSocket,
    token: async () => tokenFor(SPEAKER, { kid: kid(), claims: { sub: session } }),
  });
  connection.onEvent((event) => void events.push(event));
  connection.onAudio((frame) => void frames.push(frame.slice()));
  return { connection, events, frames, audio: () => Buffer.concat(frames) };
}

async function statusWith(token: string): Promise<number> {
  const answer = await fetch(`${gateway.url}/asyncapi.json`, {
    headers: { authorization: `Bearer ${token}` },
  });
  await answer.arrayBuffer();
  return answer.status;
}

/** The file of keys is read again soon. */
async function untilStatus(token: string, status: number): Promise<void> {
  for (let attempt = 0; attempt < 100 && (await statusWith(token)) !== status; attempt += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(await statusWith(token)).toBe(status);
}

it("a hundred sessions speak on while keys and certificate are replaced, and the old key opens nothing more", async () => {
  let kid = "app";
  const speakers: Speaker[] = [];
  for (let index = 0; index < SESSIONS; index += 1) speakers.push(await join(`s${index}`, () => kid));
  // Stays with a token of the old key.
  const headers = { authorization: `Bearer ${tokenFor(LISTENER)}` };
  await using listener = await TestClient.connect(gateway, "/live/s0?format=none", { headers });
  const said = speakers.map(({ connection }) => connection.say(TEXT));
  await until("all to speak", () => speakers.every(({ frames }) => frames.length > 0), PATIENT);

  keys.write({ keys: [NEW_KEY] });
  files.put(PAIRS.renewed);
  await untilStatus(tokenFor(SPEAKER, { kid: "app-2" }), 200);
  kid = "app-2";
  const expires = new Date(Date.now() + 4000).toISOString();
  keys.write({ app: { expires }, keys: [NEW_KEY] });
  const isRefreshed = ({ events }: Speaker) => events.some(({ type }) => type === "refreshed");
  await until("a new token for each session", () => speakers.every(isRefreshed), PATIENT);
  expect(await listener.untilClosed()).toEqual({ code: 4401, reason: "token_expired" });
  await until("the renewal", () => gateway.counters.tlsRenewals === 1, PATIENT);
  expect(await shownName(gateway.port)).toBe("renewed.example");
  expect(await statusWith(tokenFor(SPEAKER, { kid: "app" }))).toBe(401);
  keys.writeText(JSON.stringify({ keys: [NEW_KEY] }));
  // What the others say in real time, at once.
  const late = await join("late", () => kid, "burst");
  const lateSaid = late.connection.say(TEXT);

  await untilStatus(keys.key, 401);
  for (const done of await Promise.all([...said, lateSaid])) expect(done.outcome).toBe("done");
  const whole = late.audio();
  expect(whole.length).toBeGreaterThanOrEqual((SOUND_MS / 1000) * 8000 * 2);
  for (const { audio, events } of speakers) {
    const types = events.map(({ type }) => type);
    expect(types.indexOf("refreshed")).toBeLessThan(types.indexOf("utterance.done"));
    expect(audio().equals(whole)).toBe(true);
    expect(events.filter(({ type }) => type === "gap" || type === "error")).toEqual([]);
  }
  await Promise.all([late, ...speakers].map(({ connection }) => connection.close()));
});
