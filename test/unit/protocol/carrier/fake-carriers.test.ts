/** The fakes themselves: what a vendor would not take is seen, and what it plays is known to the sample. */
import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { CARRIERS, type CarrierName } from "../../../../src/protocol/carrier/carrier.ts";
import { DIALECTS } from "../../../../src/protocol/carrier/index.ts";
import { FakeClock } from "../../../helpers/fake-clock.ts";
import { until } from "../../../helpers/until.ts";
import { AsteriskPeer } from "../../../kit/carriers/asterisk-peer.ts";
import { FakeCarrier } from "../../../kit/carriers/fake-carrier.ts";
import { VirtualPlayer } from "../../../kit/carriers/virtual-player.ts";
import { WiredCall } from "./wired-call.ts";

describe("VirtualPlayer", () => {
  const player = (prebufferMs = 0) => {
    const clock = new FakeClock();
    return { clock, player: new VirtualPlayer({ clock, sampleRate: 8000, bytesPerSample: 1, prebufferMs }) };
  };

  it("plays on the clock, and silence does not count", () => {
    const { clock, player: voice } = player();
    voice.push(new Uint8Array(160).fill(1));
    clock.advance(5);
    expect([voice.playedSamples, voice.queuedSamples, voice.endSamples]).toEqual([40, 120, 160]);
    clock.advance(1000);
    expect(voice.playedSamples).toBe(160);
    voice.push(new Uint8Array(80).fill(2));
    clock.advance(3);
    expect(voice.playedSamples).toBe(184);
    expect(Buffer.from(voice.heard())).toEqual(Buffer.from([...Array(160).fill(1), ...Array(24).fill(2)]));
  });

  it("reports when a sample has been played, in order, at once where it has, and never after a clear", () => {
    const { clock, player: voice } = player();
    const received: string[] = [];
    voice.notify(0, () => received.push("idle"));
    voice.push(new Uint8Array(160));
    voice.notify(160, () => received.push("end"));
    voice.notify(80, () => received.push("middle"));
    clock.advance(9);
    expect(received).toEqual(["idle"]);
    clock.advance(1);
    expect(received).toEqual(["idle", "middle"]);
    voice.clear();
    expect(clock.pending).toBe(0);
    clock.advance(100);
    expect([received.length, voice.playedSamples]).toEqual([2, 80]);
  });

  it("waits for its prebuffer", () => {
    const { clock, player: voice } = player(80);
    voice.push(new Uint8Array(639));
    clock.advance(1000);
    expect(voice.playedSamples).toBe(0);
    voice.push(new Uint8Array(1));
    clock.advance(80);
    expect(voice.playedSamples).toBe(640);
  });
});

describe("violations", () => {
  const WRONG: readonly (readonly [CarrierName, string | Uint8Array])[] = [
    ["twilio", '{"event":"hangup","streamSid":"SID"}'],
    ["twilio", '{"event":"clear","streamSid":"MZ0"}'],
    ["twilio", '{"event":"clear","streamSid":"SID","why":1}'],
    ["twilio", '{"event":"mark","streamSid":"SID"}'],
    ["twilio", '{"event":"mark","streamSid":"SID","mark":{"name":""}}'],
    ["twilio", '{"event":"media","streamSid":"SID","media":{"payload":"a b"}}'],
    ["twilio", '{"event":"media","streamSid":"SID","media":{"payload":"","chunk":"1"}}'],
    ["twilio", new Uint8Array(160)],
    ["twilio", "{"],
    ["signalwire", '{"event":"stop","streamSid":"SID"}'],
    ["telnyx", '{"event":"media","media":{"payload":"AAAA"}}'],
    ["telnyx", '{"event":"clear","stream_id":"SID"}'],
    ["telnyx", '{"event":"hello"}'],
    ["plivo", '{"event":"clearAudio","streamId":"other"}'],
    [
      "plivo",
      '{"event":"playAudio","media":{"contentType":"audio/x-l16","sampleRate":8000,"payload":"AAAA"}}',
    ],
    ["plivo", '{"event":"media","streamId":"SID"}'],
    ["exotel", `{"event":"media","stream_sid":"SID","media":{"payload":"${"A".repeat(2560)}"}}`],
    ["exotel", '{"event":"start","stream_sid":"SID"}'],
    ["vonage", new Uint8Array(320)],
    ["vonage", '{"action":"stop"}'],
    ["jambonz", new Uint8Array(3)],
    ["jambonz", Uint8Array.of(0, 0, 255, 255)],
    ["jambonz", '{"type":"sing"}'],
    ["asterisk", new Uint8Array(161)],
    ["asterisk", new Uint8Array(65_600)],
    ["asterisk", `MARK_MEDIA ${"x".repeat(128)}`],
    ["asterisk", "MARK_MEDIA"],
    ["asterisk", "flush_media"],
  ];

  it.each(WRONG)("%s: %s", (carrier, message) => {
    const call = new WiredCall(carrier);
    call.peer.take(typeof message === "string" ? message.replace("SID", call.call.streamId) : message);
    expect(call.violations).toHaveLength(1);
  });

  it("vonage: more than 3072 messages", () => {
    const call = new WiredCall("vonage");
    const frame = new Uint8Array(call.frameBytes);
    for (let sent = 0; sent < 3072; sent += 1) call.peer.take(frame);
    expect(call.violations).toEqual([]);
    call.peer.take(frame);
    expect(call.violations).toHaveLength(1);
  });

  it("jambonz: more than 30 marks", () => {
    const call = new WiredCall("jambonz");
    call.audio([new Uint8Array(call.frameBytes * 5)]);
    for (let i = 0; i < 31; i += 1) call.peer.take(`{"type":"mark","data":{"name":"m${i}"}}`);
    expect(call.violations).toHaveLength(1);
  });
});

describe("asterisk", () => {
  it("says XOFF at 900 frames and XON below 800, drops beyond 1000", () => {
    const call = new WiredCall("asterisk");
    const frames = (count: number) => Array.from({ length: count }, () => new Uint8Array(160));
    const kinds = () => call.events.slice(1).map((event) => event.kind);
    call.audio(frames(899));
    expect(kinds()).toEqual([]);
    call.audio(frames(1));
    expect(kinds()).toEqual(["hold"]);
    call.clock.advance(100 * 20);
    expect(kinds()).toEqual(["hold"]);
    call.clock.advance(20);
    expect(kinds()).toEqual(["hold", "goOn"]);
    call.audio(frames(AsteriskPeer.MAX_FRAMES - 799));
    expect(call.violations).toEqual([]);
    call.audio(frames(1));
    expect(call.violations).toEqual(["the queue of 1000 frames is full"]);
    // A flush makes room at once, and drops the marks that wait without a word.
    call.mark("m1");
    call.clear();
    call.clock.advance(60_000);
    expect(kinds()).toEqual(["hold", "goOn", "hold", "goOn"]);
  });
});

describe("FakeCarrier", () => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  /** Speaks the dialect: answers each message of the caller's voice with 100 ms of speech and a mark. */
  async function answering(carrier: CarrierName) {
    const played: string[] = [];
    const ends: string[] = [];
    const http = createServer();
    const sockets = new WebSocketServer({ server: http, handleProtocols: ([first]) => first ?? false });
    sockets.on("connection", (socket: WebSocket, request) => {
      const url = new URL(request.url ?? "", "ws://localhost");
      const codec = DIALECTS[carrier].open({ query: new Map(url.searchParams), headers: new Map() });
      let frameBytes = 0;
      socket.on("message", (data: Buffer, isBinary) => {
        for (const event of codec.read(isBinary ? data : data.toString("utf8"))) {
          if (event.kind === "started") frameBytes = event.call.format === "ulaw_8000" ? 160 : 0;
          if (event.kind === "started" && frameBytes === 0) {
            frameBytes = Number(event.call.format.split("_")[1]) / 25;
          }
          if (event.kind === "media") {
            const frames = Array.from({ length: 5 }, () => new Uint8Array(frameBytes).fill(7));
            const mark = () => codec.mark(`m${played.length + 1}`);
            for (const wire of [...codec.audio(frames), ...codec.flush(), mark()])
              if (wire !== null) socket.send(wire);
          }
          if (event.kind === "played") played.push(event.name);
          if (event.kind === "stopped" || event.kind === "odd") ends.push(event.kind);
        }
      });
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    closers.push(() => new Promise((resolve) => http.close(resolve)));
    const address = http.address();
    if (address === null || typeof address === "string") throw new Error("The server does not listen");
    return { url: `ws://127.0.0.1:${address.port}/`, played, ends };
  }

  it.each(CARRIERS)("%s over a real socket: speech, marks, the end", async (carrier) => {
    const { url, played, ends } = await answering(carrier);
    const phone = await FakeCarrier.dial({ carrier, url });
    phone.say(new Uint8Array(320));
    await until("the mark is played", () => played.length === 1);
    expect(
      phone
        .heard()
        .subarray(0, 800)
        .every((byte) => byte === 7),
    ).toBe(true);
    expect(phone.playedSamples).toBeGreaterThanOrEqual(800);
    phone.say(new Uint8Array(320));
    await until("more comes", () => phone.player.queuedSamples > 0);
    expect(await phone.hangUp()).toBe(1000);
    expect(phone.violations).toEqual([]);
    expect(ends.filter((kind) => kind === "odd")).toEqual([]);
  });

  it("connects without a word where it is asked to, and says what the test sends", async () => {
    const { url, ends } = await answering("twilio");
    const phone = await FakeCarrier.dial({ carrier: "twilio", url, startsCall: false });
    phone.sendRaw('{"event":"connected","protocol":"Call","version":"1.0.0"}');
    phone.sendRaw('{"event":"news"}');
    await until("the unknown event is odd", () => ends.length === 1);
    expect(await phone.drop()).toBe(1006);
  });

  it("rejects where the upgrade is refused", async () => {
    const http = createServer();
    http.on("upgrade", (_, socket) => socket.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n"));
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    closers.push(() => new Promise((resolve) => http.close(resolve)));
    const address = http.address();
    const port = typeof address === "object" ? address?.port : 0;
    const dialled = FakeCarrier.dial({ carrier: "twilio", url: `ws://127.0.0.1:${port}/` });
    await expect(dialled).rejects.toThrow(/403/);
  });
});
