/** Calls without a WebSocket, over real sockets: Asterisk's AudioSocket (TCP) and RTP (UDP), each against a peer of ours. */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RtpPacketizer } from "../../src/audio/containers/rtp.ts";
import { audioSocketPackets } from "../../src/protocol/carrier/audiosocket.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { ndjsonSpeech } from "../helpers/tone-speech.ts";
import { until } from "../helpers/until.ts";
import { FakeAsterisk } from "../kit/fake-asterisk.ts";
import { RtpPhone } from "../kit/rtp-phone.ts";

const MS_PER_CHARACTER = 60;
const WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliett";
const UUID = "01234567-89ab-cdef-0123-456789abcdef";
const PATIENT_MS = 60_000;

let upstream: FakeUpstream;
let gateway: TestGateway;
let audioSocketPort: number;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: MS_PER_CHARACTER }));
  audioSocketPort = await freePort();
  gateway = await gatewayAt(upstream.url, { trimMs: 0, audiosocketPort: audioSocketPort });
});
afterAll(async () => {
  await gateway?.close();
  await upstream?.close();
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

const bridge = (session: string, query = ""): Promise<TestClient> =>
  TestClient.connect(gateway, `/live/${session}?role=speaker&events=words,call,dtmf${query}`);

const wordsIn = (characters: number): number =>
  WORDS.slice(0, characters + 1)
    .split(" ")
    .slice(0, characters < WORDS.length ? -1 : undefined)
    .filter((word) => word !== "").length;

/** Whether every sample of speech stands in what came, in order; a machine that is held up may put silence between. */
function expectWhole(heard: Buffer, text: string, format: string): void {
  const spoken = Buffer.from(ndjsonSpeech({ text, msPerChar: MS_PER_CHARACTER, format }).audio);
  const frameBytes = format === "pcm_8000" ? 320 : 160;
  const sounding = soundOf(spoken, frameBytes);
  expect(soundOf(heard, frameBytes).subarray(0, sounding.length).equals(sounding)).toBe(true);
}

/** Without the frames that are all silence. */
function soundOf(audio: Buffer, frameBytes: number): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < audio.length; at += frameBytes) frames.push(audio.subarray(at, at + frameBytes));
  const silence = frameBytes === 320 ? 0 : 0xff;
  return Buffer.concat(frames.filter((frame) => frame.some((byte) => byte !== silence)));
}

describe.concurrent("AudioSocket", { timeout: PATIENT_MS }, () => {
  it("hears every sample, in frames of 20 ms, and silence when nothing is said", async () => {
    await using controller = await bridge(`audiosocket-${UUID}`);
    await using asterisk = await FakeAsterisk.dial(audioSocketPort, UUID);
    asterisk.say(0);
    expect(await controller.next("call")).toMatchObject({
      state: "started",
      carrier: "audiosocket",
      call_id: UUID,
      caller_format: "pcm_8000",
    });
    controller.send({ type: "speak", text: WORDS });
    await controller.next("utterance.done");
    await until("silence follows", () => asterisk.isSilent);
    expect(new Set(asterisk.frames.map((frame) => frame.length))).toEqual(new Set([320]));
    expectWhole(asterisk.speech, WORDS, "pcm_8000");
  });

  it("is silent at once when interrupted, and the receipt says what was sent", async () => {
    const uuid = UUID.replace("0123", "aaaa");
    await using controller = await bridge(`audiosocket-${uuid}`);
    await using asterisk = await FakeAsterisk.dial(audioSocketPort, uuid);
    asterisk.say(0);
    await controller.next("call");
    controller.send({ type: "speak", text: WORDS });
    await until("it speaks", () => asterisk.speech.length > 1300 * 16);
    controller.send({ type: "interrupt" });
    const { heard } = await controller.next("interrupted");
    const speechMs = () => asterisk.speech.findLastIndex((byte) => byte !== 0) / 16;
    const atCutMs = speechMs();
    expect(heard.source).toBe("mark");
    expect(Math.abs(wordsIn(heard.end) - wordsIn(atCutMs / MS_PER_CHARACTER))).toBeLessThanOrEqual(1);
    const frames = asterisk.frames.length;
    await until("silence goes on", () => asterisk.frames.length > frames + 10);
    // What was on its way when the cut came, and no more.
    expect(speechMs() - atCutMs).toBeLessThan(100);
  });

  it("the caller's voice and keys reach the bridge, however the bytes are cut", async () => {
    const uuid = UUID.replace("0123", "bbbb");
    await using controller = await bridge(`audiosocket-${uuid}`, "&caller=pcm_8000");
    await using asterisk = await FakeAsterisk.dial(audioSocketPort, uuid);
    const bytes = Buffer.concat([
      audioSocketPackets(0x10, [new Uint8Array(320).fill(7), new Uint8Array(320).fill(8)]),
      Buffer.of(3, 0, 1, 0x35),
    ]);
    for (const byte of bytes) asterisk.socket.write(Buffer.of(byte));
    expect((await controller.next("dtmf")).digit).toBe("5");
    await controller.until(() => controller.frames.length === 2);
    expect(controller.audio).toEqual(Buffer.concat([Buffer.alloc(320, 7), Buffer.alloc(320, 8)]));
  });

  it("hangs up on request, and the session goes on", async () => {
    const uuid = UUID.replace("0123", "cccc");
    await using controller = await bridge(`audiosocket-${uuid}`);
    await using asterisk = await FakeAsterisk.dial(audioSocketPort, uuid);
    asterisk.say(0);
    await controller.next("call");
    controller.send({ type: "hangup" });
    expect(await controller.next("call", 2)).toMatchObject({ state: "ended" });
    await until("the call is over", () => asterisk.isHungUp && asterisk.isClosed);
    controller.send({ type: "ping" });
    await controller.next("pong");
  });

  it("what is no AudioSocket is cut off, and another call hears every sample", async () => {
    const uuid = UUID.replace("0123", "dddd");
    await using controller = await bridge(`audiosocket-${uuid}`);
    await using asterisk = await FakeAsterisk.dial(audioSocketPort, uuid);
    asterisk.say(0);
    await controller.next("call");
    controller.send({ type: "speak", text: WORDS });
    const stranger = connect(audioSocketPort, "127.0.0.1");
    stranger.on("error", () => undefined).resume();
    stranger.write("GET / HTTP/1.1\r\n\r\n");
    await once(stranger, "close");
    await controller.next("utterance.done");
    await until("silence follows", () => asterisk.isSilent);
    expectWhole(asterisk.speech, WORDS, "pcm_8000");
  });
});

interface Taken {
  readonly call_id: string;
  readonly port: number;
}

async function take(body: object): Promise<{ status: number; taken: Taken }> {
  const response = await fetch(`${gateway.url}/carrier/rtp`, { method: "POST", body: JSON.stringify(body) });
  return { status: response.status, taken: (await response.json()) as Taken };
}

describe.concurrent("RTP", { timeout: PATIENT_MS }, () => {
  it("sends a whole text with right numbers, timestamps and marker to the phone that is named", async () => {
    await using controller = await bridge("rtp-named");
    await using phone = await RtpPhone.open();
    const { status, taken } = await take({ session: "rtp-named", remote: phone.address });
    expect(status).toBe(201);
    expect(await controller.next("call")).toMatchObject({ carrier: "rtp", call_id: taken.call_id });
    phone.say(taken.port, 1);
    await until("silence comes first", () => phone.packets.length > 5);
    controller.send({ type: "speak", text: WORDS });
    await controller.next("utterance.done");
    await until("silence follows", () =>
      phone.packets.slice(-3).every(({ payload }) => payload.every((byte) => byte === 0xff)),
    );
    const { packets } = phone;
    const [first] = packets;
    for (const [index, packet] of packets.entries()) {
      expect(packet.payloadType).toBe(0);
      expect(packet.ssrc).toBe(first?.ssrc);
      expect(packet.payload.length).toBe(160);
      expect(packet.sequence).toBe(((first?.sequence ?? 0) + index) & 0xffff);
    }
    const steps = packets
      .slice(1)
      .map((packet, index) => (packet.timestamp - (packets[index]?.timestamp ?? 0)) >>> 0);
    // A late beat may be skipped where the machine is busy: in whole frames then.
    expect(steps.every((step) => step > 0 && step % 160 === 0)).toBe(true);
    const marked = packets.filter(({ hasMarker }) => hasMarker);
    const firstSpoken = packets.find(({ payload }) => payload.some((byte) => byte !== 0xff));
    expect(marked[0]).toBe(firstSpoken);
    expectWhole(phone.speech, WORDS, "ulaw_8000");
    const gone = await fetch(`${gateway.url}/carrier/rtp/${taken.call_id}`, { method: "DELETE" });
    expect(gone.status).toBe(200);
    expect(await controller.next("call", 2)).toMatchObject({ state: "ended" });
  });

  it("takes the first that sends for its peer, hears it, and nobody else", async () => {
    await using controller = await bridge("rtp-first", "&caller=ulaw_8000");
    await using phone = await RtpPhone.open();
    await using stranger = await RtpPhone.open();
    const { taken } = await take({ session: "rtp-first" });
    phone.say(taken.port, 1);
    await controller.next("call");
    stranger.say(taken.port, 66);
    phone.send(taken.port, "no RTP at all");
    for (const value of [2, 3, 4]) phone.say(taken.port, value);
    await controller.until(() => controller.frames.length >= 4);
    expect(controller.frames.map((frame) => frame[0])).toEqual([1, 2, 3, 4]);
    await until("the phone hears silence", () => phone.packets.length > 3);
    expect(stranger.packets).toEqual([]);
  });

  it("emits keys", async () => {
    await using controller = await bridge("rtp-keys");
    await using phone = await RtpPhone.open();
    const { taken } = await take({ session: "rtp-keys", remote: phone.address });
    const keys = new RtpPacketizer({
      payloadType: 101,
      isL16: false,
      samplesPerFrame: 0,
      ssrc: 7,
      sequence: 1,
      timestamp: 160,
    });
    for (const [flags, duration] of [
      [0x0a, 160],
      [0x8a, 800],
      [0x8a, 800],
    ] as const) {
      phone.send(taken.port, keys.wrap(Uint8Array.of(11, flags, duration >> 8, duration & 255), false));
    }
    expect(await controller.next("dtmf")).toMatchObject({
      digit: "#",
      duration_ms: 100,
      call_id: taken.call_id,
    });
    expect(controller.eventsOf("dtmf")).toHaveLength(1);
  });

  it("ends at once when the phone's port is closed, and says why", async () => {
    await using controller = await bridge("rtp-closed");
    const phone = await RtpPhone.open();
    const { taken } = await take({ session: "rtp-closed", remote: phone.address });
    await until("it is sent to", () => phone.packets.length > 0);
    await phone.close();
    expect(await controller.next("call", 2)).toMatchObject({
      call_id: taken.call_id,
      state: "ended",
      reason: "peer unreachable",
    });
    const gone = await fetch(`${gateway.url}/carrier/rtp/${taken.call_id}`, { method: "DELETE" });
    expect(gone.status).toBe(404);
  });

  it("takes nobody outside rtp-peers for its peer, and counts the packets", async () => {
    await using other = await gatewayAt(upstream.url, { rtpPeers: "10.0.0.0/8" });
    await using phone = await RtpPhone.open();
    const answer = await fetch(`${other.url}/carrier/rtp`, {
      method: "POST",
      body: JSON.stringify({ session: "s" }),
    });
    const { port } = (await answer.json()) as Taken;
    for (const value of [1, 2, 3]) phone.say(port, value);
    let metrics = "";
    while (!metrics.includes('voicewire_call_strangers_total{carrier="rtp"} 3\n')) {
      metrics = await (await fetch(`${other.opsUrl}/metrics`)).text();
    }
    expect(metrics).toContain('voicewire_calls_total{carrier="rtp"} 0\n');
    expect(phone.packets).toEqual([]);
  });

  it.each([
    ["no session", {}],
    ["a remote without a port", { session: "s", remote: "127.0.0.1" }],
    ["a remote that is no address", { session: "s", remote: "example.com:4000" }],
    ["another format", { session: "s", format: "pcm_8000" }],
    ["a remote that is no peer of ours", { session: "s", remote: "224.0.0.1:4000" }],
    ["listen_only where the setting is off", { session: "s", remote: "127.0.0.1:4000", listen_only: true }],
    ["a field that is not known", { session: "s", colour: "red" }],
  ])("refuses %s", async (_, body) => {
    const { status, taken } = await take(body);
    expect([status, taken]).toEqual([400, { error: expect.objectContaining({ code: "invalid_field" }) }]);
  });

  it("knows only its own calls", async () => {
    const gone = await fetch(`${gateway.url}/carrier/rtp/nobody`, { method: "DELETE" });
    expect(await gone.json()).toEqual({ error: expect.objectContaining({ code: "unknown_call" }) });
  });

  it.each(["10000", "10100-10000", "80-90", "10000-70000", "a-b"])(
    "refuses %s as a range of ports",
    async (rtpPorts) => {
      await expect(gatewayAt(upstream.url, { rtpPorts })).rejects.toMatchObject({ code: "invalid_config" });
    },
  );

  it.each(["all", "10.0.0.0/33", ""])("refuses %j as rtp-peers", async (rtpPeers) => {
    await expect(gatewayAt(upstream.url, { rtpPeers })).rejects.toMatchObject({ code: "invalid_config" });
  });

  it("takes ports of its range at random, each once", async () => {
    await using other = await gatewayAt(upstream.url, { rtpPorts: "43000-43999" });
    const ports: number[] = [];
    for (let calls = 0; calls < 12; calls += 1) {
      const body = JSON.stringify({ session: "s" });
      const response = await fetch(`${other.url}/carrier/rtp`, { method: "POST", body });
      ports.push(((await response.json()) as Taken).port);
    }
    expect(ports.every((port) => port >= 43_000 && port <= 43_999 && port % 2 === 0)).toBe(true);
    expect(new Set(ports).size).toBe(12);
    // By chance once in 12! times.
    expect(ports).not.toEqual(ports.toSorted((a, b) => a - b));
  });

  it("takes even ports of its range, and says when there is none left", async () => {
    await using other = await gatewayAt(upstream.url, { rtpPorts: "42001-42004" });
    const taken = await Promise.all(
      [1, 2, 3].map(async () => {
        const body = JSON.stringify({ session: "s" });
        const response = await fetch(`${other.url}/carrier/rtp`, { method: "POST", body });
        return (await response.json()) as { call_id?: string; port?: number; error?: { code: string } };
      }),
    );
    expect(taken.flatMap(({ port }) => port ?? []).sort()).toEqual([42_002, 42_004]);
    expect(taken.flatMap(({ error }) => error?.code ?? [])).toEqual(["port_in_use"]);
    const [given] = taken.filter(({ port }) => port !== undefined);
    await fetch(`${other.url}/carrier/rtp/${given?.call_id}`, { method: "DELETE" });
    const again = await fetch(`${other.url}/carrier/rtp`, { method: "POST", body: '{"session":"s"}' });
    expect(await again.json()).toMatchObject({ port: given?.port });
  });
});
