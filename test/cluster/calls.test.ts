/** Phone calls at one node, their session at another: two gateways that share a bus in memory. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { Config } from "../../src/config.ts";
import { CARRIERS, type CarrierName } from "../../src/protocol/carrier/carrier.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { ndjsonSpeech } from "../helpers/tone-speech.ts";
import { until } from "../helpers/until.ts";
import { FakeCarrier, type FakeCarrierOptions } from "../kit/carriers/fake-carrier.ts";
import { FakeAsterisk } from "../kit/fake-asterisk.ts";
import { RtpPhone } from "../kit/rtp-phone.ts";
import { startPair as startClusterPair, startNode, type TestNode } from "./pair.ts";

const MS_PER_CHARACTER = 40;
const TEXT = "one two three";
const LONG = "One two three four five six seven eight nine ten eleven twelve.";
const PATIENT_MS = 60_000;
let upstream: FakeUpstream;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: MS_PER_CHARACTER }));
});
afterAll(async () => {
  await upstream.close();
});

const startPair = (settings: Partial<Config> = {}) => startClusterPair(upstream.url, settings);

/** Speaks into the session and hears of its calls, without sound. */
async function bridge({ gateway }: TestNode, session: string, query = ""): Promise<TestClient> {
  const client = await TestClient.connect(
    gateway,
    `/live/${session}?role=speaker&events=words,call,dtmf${query}`,
  );
  await client.next("hello");
  return client;
}

function dial(
  { gateway }: TestNode,
  session: string,
  { carrier = "twilio", ...options }: Partial<FakeCarrierOptions> & { carrier?: CarrierName } = {},
): Promise<FakeCarrier> {
  const query = carrier === "asterisk" ? `?session=${session}` : "";
  return FakeCarrier.dial({
    carrier,
    url: `${gateway.wsUrl}/carrier/${carrier}${query}`,
    call: { parameters: { session } },
    ...options,
  });
}

const speech = (text: string) => Buffer.from(ndjsonSpeech({ text, msPerChar: MS_PER_CHARACTER }).audio);
const clears = ({ received }: FakeCarrier): number =>
  received.filter((message) => typeof message === "string" && message.includes('"clear"')).length;

describe("a call at another node than its session", { timeout: PATIENT_MS }, () => {
  it("hears the same frames as one at the session's node, and its marks come back", async () => {
    await using nodes = await startPair();
    await using controller = await bridge(nodes.one, "same");
    const near = await dial(nodes.one, "same");
    const far = await dial(nodes.two, "same");
    await controller.next("call", 2);
    controller.send({ type: "speak", text: TEXT });
    await controller.next("utterance.done");
    await until("both have heard it", () =>
      [near, far].every((one) => one.playedSamples >= speech(TEXT).length),
    );
    expect(Buffer.from(far.heard()).equals(speech(TEXT))).toBe(true);
    expect(Buffer.from(far.heard()).equals(Buffer.from(near.heard()))).toBe(true);
    expect([near.violations, far.violations]).toEqual([[], []]);
    expect(nodes.two.gateway.counters.sessionsOpened).toBe(0);
    await Promise.all([near.hangUp(), far.hangUp()]);
    await controller.next("call", 4);
  });

  it("interrupted: the receipt says what its carrier has played, and what follows is clean", async () => {
    await using nodes = await startPair();
    await using controller = await bridge(nodes.one, "cut");
    const far = await dial(nodes.two, "cut");
    await controller.next("call");
    controller.send({ type: "speak", text: LONG });
    await until("the carrier plays", () => far.playedSamples >= 900 * 8);
    controller.send({ type: "interrupt" });
    const { heard } = await controller.next("interrupted");
    expect(heard.source).toBe("mark");
    await until("the clear has come", () => clears(far) === 1);
    const before = far.playedSamples;
    expect(Math.abs(heard.ms - before / 8)).toBeLessThan(1000);
    controller.send({ type: "speak", text: TEXT });
    await until("the next one is played", () => far.playedSamples === before + speech(TEXT).length);
    expect(Buffer.from(far.heard()).subarray(before).equals(speech(TEXT))).toBe(true);
    expect(far.violations).toEqual([]);
    await far.hangUp();
  });

  it("where the gateways have keys it joins with one, and is heard", async () => {
    using keys = new TestKeys();
    await using nodes = await startPair({ keysFile: keys.path });
    const headers = { authorization: `Bearer ${keys.key}` };
    const path = "/live/keyed?role=speaker&events=words,call,dtmf";
    await using controller = await TestClient.connect(nodes.one.gateway, path, { headers });
    await controller.next("hello");
    const far = await dial(nodes.two, "keyed", { headers });
    await controller.next("call");
    controller.send({ type: "speak", text: TEXT });
    await controller.next("utterance.done");
    await until("it is heard", () => far.playedSamples >= speech(TEXT).length);
    expect(Buffer.from(far.heard()).equals(speech(TEXT))).toBe(true);
    expect(nodes.two.gateway.counters.sessionsOpened).toBe(0);
    await far.hangUp();
  });

  it("its caller is heard, its keys come, and the session hangs it up", async () => {
    await using nodes = await startPair();
    await using controller = await bridge(nodes.one, "voice", "&caller=ulaw_8000");
    const far = await dial(nodes.two, "voice");
    const started = await controller.next("call");
    expect(started).toMatchObject({ state: "started", call_id: far.call.callId, carrier: "twilio" });
    const voice = Buffer.from(Uint8Array.from({ length: 160 * 25 }, (_, at) => (at * 7) % 251));
    for (let at = 0; at < voice.length; at += 160) far.say(voice.subarray(at, at + 160));
    far.press("5");
    await controller.until(() => controller.eventsOf("dtmf").length === 1 && controller.frames.length === 25);
    expect(controller.audio.equals(voice)).toBe(true);
    controller.send({ type: "hangup", call_id: far.call.callId });
    expect(await far.closed).toBe(1000);
    expect(await controller.next("call", 2)).toMatchObject({ state: "ended", reason: "hangup" });
    expect(far.violations).toEqual([]);
  });

  it("hung up by its caller: the session hears why", async () => {
    await using nodes = await startPair();
    await using controller = await bridge(nodes.one, "gone");
    const dropped = await dial(nodes.two, "gone");
    await controller.next("call");
    await dropped.drop();
    expect(await controller.next("call", 2)).toMatchObject({ state: "ended", reason: "connection closed" });
    const stopped = await dial(nodes.two, "gone");
    await controller.next("call", 3);
    await stopped.hangUp();
    expect(await controller.next("call", 4)).toMatchObject({ state: "ended", reason: "stopped" });
  });

  it("is greeted once, by the session's node", async () => {
    await using nodes = await startPair();
    await using controller = await bridge(nodes.one, "greeting");
    const far = await dial(nodes.two, "greeting", {
      call: { parameters: { session: "greeting", text: TEXT, voice_id: "v" } },
    });
    await controller.next("utterance.done");
    await until("it is heard", () => far.playedSamples === speech(TEXT).length);
    expect(controller.eventsOf("utterance.started")).toHaveLength(1);
    await far.hangUp();
  });

  it("opens a session that is nowhere where it arrives, and its bridge comes to it there", async () => {
    await using nodes = await startPair();
    const far = await dial(nodes.two, "first");
    await until("the call has begun", () => nodes.two.gateway.counters.sessionsOpened === 1);
    await using controller = await bridge(nodes.one, "first");
    await controller.next("call");
    controller.send({ type: "speak", text: TEXT });
    await until("it is heard", () => far.playedSamples === speech(TEXT).length);
    expect(nodes.one.gateway.counters.sessionsOpened).toBe(0);
    await far.hangUp();
  });

  it("is refused while the bus is lost", async () => {
    await using nodes = await startPair();
    nodes.two.bus.cut();
    const refused = await dial(nodes.two, "lost");
    expect(await refused.closed).toBe(4502);
  });

  it("by RTP: speech, the caller's voice and the end work", async () => {
    await using nodes = await startPair();
    await using controller = await bridge(nodes.one, "rtp", "&caller=ulaw_8000");
    await using phone = await RtpPhone.open();
    const answer = await fetch(`${nodes.two.gateway.url}/carrier/rtp`, {
      method: "POST",
      body: JSON.stringify({ session: "rtp", remote: phone.address }),
    });
    expect(answer.status).toBe(201);
    const { port } = (await answer.json()) as { port: number };
    phone.say(port, 7);
    expect(await controller.next("call")).toMatchObject({ carrier: "rtp", state: "started" });
    controller.send({ type: "speak", text: TEXT });
    await until("it is heard", () => phone.speech.includes(speech(TEXT)));
    phone.say(port, 9);
    await controller.until(() => controller.audio.includes(Buffer.alloc(160, 9)));
    controller.send({ type: "hangup" });
    expect(await controller.next("call", 2)).toMatchObject({ state: "ended", reason: "hangup" });
  });

  it("by RTP: any node ends it, for who may", async () => {
    using keys = new TestKeys();
    await using nodes = await startPair({ keysFile: keys.path });
    const withKey = { headers: { authorization: `Bearer ${keys.key}` } };
    await using phone = await RtpPhone.open();
    const taken = await fetch(`${nodes.one.gateway.url}/carrier/rtp`, {
      method: "POST",
      body: JSON.stringify({ session: "ended", remote: phone.address }),
      ...withKey,
    });
    const { call_id } = (await taken.json()) as { call_id: string };
    const end = async (id: string, token: string) => {
      const answer = await fetch(`${nodes.two.gateway.url}/carrier/rtp/${id}`, {
        method: "DELETE",
        headers: { authorization: `Bearer ${token}` },
      });
      const body = (await answer.json()) as { call_id?: string; error?: { code: string } };
      return [answer.status, body.error?.code ?? body.call_id];
    };
    const stranger = tokenFor({ sessions: ["other"], allow: ["call"] });
    expect(await end(call_id, stranger)).toEqual([403, "forbidden"]);
    expect(await end(`nobody.${call_id.split(".")[1]}`, keys.key)).toEqual([404, "unknown_call"]);
    expect(await end(call_id, keys.key)).toEqual([200, call_id]);
    expect(await end(call_id, keys.key)).toEqual([404, "unknown_call"]);
  });

  it("by AudioSocket: speech and the end work", async () => {
    const port = await freePort();
    await using pair = await startPair();
    const two = await startNode(pair.hub, upstream.url, { audiosocketPort: port });
    await using _ = two.gateway;
    await using controller = await bridge(pair.one, "audiosocket");
    const answer = await fetch(`${two.gateway.url}/carrier/audiosocket`, {
      method: "POST",
      body: JSON.stringify({ session: "audiosocket" }),
    });
    const { uuid } = (await answer.json()) as { uuid: string };
    await using asterisk = await FakeAsterisk.dial(port, uuid);
    asterisk.say(1);
    await controller.next("call");
    controller.send({ type: "speak", text: TEXT });
    await controller.next("utterance.done");
    await until("it is heard", () => asterisk.speech.length > 8000);
    controller.send({ type: "hangup" });
    await until("it is hung up", () => asterisk.isHungUp);
    await controller.next("call", 2);
  });

  it.each(CARRIERS)("a call of %s gets its speech, a key and its end", async (carrier) => {
    await using nodes = await startPair();
    await using controller = await bridge(nodes.one, `via-${carrier}`);
    const far = await dial(nodes.two, `via-${carrier}`, { carrier });
    await controller.next("call");
    controller.send({ type: "speak", text: TEXT });
    await until("it is heard", () => far.playedSamples > 0);
    await controller.next("utterance.done");
    far.press("7");
    await controller.next("dtmf");
    controller.send({ type: "hangup" });
    await far.closed;
    await controller.next("call", 2);
    expect(far.violations).toEqual([]);
  });
});

describe("a call at a node that is shut down", { timeout: PATIENT_MS }, () => {
  it("is told so once its time is over, though its session goes on at another node, or it has none yet", async () => {
    await using nodes = await startPair({ drainMs: 300 });
    const controller = await bridge(nodes.two, "shut");
    const call = await dial(nodes.two, "shut");
    await controller.next("call");
    controller.send({ type: "speak", text: LONG });
    await until("the carrier plays", () => call.playedSamples >= 900 * 8);
    const silent = new WebSocket(`${nodes.two.gateway.wsUrl}/carrier/twilio`);
    const silentCode = new Promise<number>((resolve) => silent.on("close", resolve));
    await new Promise((resolve) => silent.once("open", resolve));
    await nodes.two.gateway.drain();
    expect([await call.closed, await silentCode]).toEqual([1001, 1001]);
    expect(nodes.one.gateway.counters.sessionsOpened).toBe(1);
  });
});

describe("a call whose session's node is lost", { timeout: PATIENT_MS }, () => {
  it("waits for the session's next node, and is spoken to from there", async () => {
    await using nodes = await startPair();
    const before = await bridge(nodes.one, "moves");
    const call = await dial(nodes.two, "moves");
    await before.next("call");
    before.send({ type: "speak", text: TEXT });
    await until("it is heard", () => call.playedSamples === speech(TEXT).length);
    await nodes.one.gateway.close();
    await before.untilClosed();
    await using after = await bridge(nodes.two, "moves");
    expect(await after.next("call")).toMatchObject({ state: "started", call_id: call.call.callId });
    const first = call.playedSamples;
    after.send({ type: "speak", text: LONG });
    await until("the carrier plays", () => call.playedSamples - first >= 900 * 8);
    after.send({ type: "interrupt" });
    const { heard } = await after.next("interrupted");
    // Its marks are those of the new leg.
    expect(heard.source).toBe("mark");
    expect(call.violations).toEqual([]);
    await call.hangUp();
    await after.next("call", 2);
  });

  it("a node that is cut off: its calls elsewhere go on with the next owner, and its own when it is back", async () => {
    await using nodes = await startPair();
    await using before = await bridge(nodes.one, "split");
    const near = await dial(nodes.one, "split");
    const far = await dial(nodes.two, "split");
    await before.next("call", 2);
    nodes.one.bus.cut();
    const takeOver = async (): Promise<TestClient> => {
      const client = await TestClient.connect(nodes.two.gateway, "/live/split?role=speaker&events=call");
      await client.until(() => client.closed !== null || client.eventsOf("hello").length > 0);
      return client;
    };
    let next = await takeOver();
    // The other node has to miss it first.
    for (let tries = 0; next.eventsOf("hello").length === 0 && tries < 100; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      next = await takeOver();
    }
    expect(await next.next("call")).toMatchObject({ call_id: far.call.callId });
    nodes.one.bus.heal();
    expect(await next.next("call", 2)).toMatchObject({ state: "started", call_id: near.call.callId });
    next.send({ type: "speak", text: TEXT });
    await until("both hear it", () =>
      [near, far].every((call) => Buffer.from(call.heard()).includes(speech(TEXT))),
    );
    expect([near.violations, far.violations]).toEqual([[], []]);
    next.socket.close();
    await Promise.all([near.hangUp(), far.hangUp()]);
  });
});
