/**
 * Phone calls over real sockets: carriers that behave as their documentation says, a bridge that speaks to them and
 * hears them, and what is said of playout held against what the carrier's player has really played.
 */
import { describe, expect, it } from "vitest";
import { CARRIERS, type CarrierName } from "../../src/protocol/carrier/carrier.ts";
import { useSpeakingGateway } from "../helpers/speaking-gateway.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { ndjsonSpeech } from "../helpers/tone-speech.ts";
import { until } from "../helpers/until.ts";
import { FakeCarrier, type FakeCarrierOptions } from "../kit/carriers/fake-carrier.ts";

const MS_PER_CHARACTER = 60;
const SAMPLES_PER_MS = 8;
const WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike";
const PATIENT_MS = 60_000;

const stand = useSpeakingGateway({ msPerChar: MS_PER_CHARACTER });

/** A bridge's one socket. */
const bridge = (session: string, query = ""): Promise<TestClient> =>
  TestClient.connect(stand.gateway, `/live/${session}?role=speaker&events=words,call,dtmf${query}`);

function dial(
  carrier: CarrierName,
  session: string,
  options: Partial<FakeCarrierOptions> = {},
): Promise<FakeCarrier> {
  const query = carrier === "asterisk" ? `?session=${session}` : "";
  return FakeCarrier.dial({
    carrier,
    url: `${stand.gateway.wsUrl}/carrier/${carrier}${query}`,
    call: { parameters: { session } },
    ...options,
  });
}

/** How many words of `WORDS` are over when so many characters were said. */
const wordsIn = (characters: number): number =>
  WORDS.slice(0, characters + 1)
    .split(" ")
    .slice(0, characters < WORDS.length ? -1 : undefined)
    .filter((word) => word !== "").length;

describe.concurrent("a call", { timeout: PATIENT_MS }, () => {
  it("interrupted mid-word: the receipt says what the carrier has played, and the next utterance follows clean", async () => {
    await using controller = await bridge("receipts");
    const carrier = await dial("twilio", "receipts");
    await controller.next("call");
    const spoken = Buffer.from(ndjsonSpeech({ text: WORDS, msPerChar: MS_PER_CHARACTER }).audio);
    for (const [index, playMs] of [700, 1330, 450, 2110].entries()) {
      const before = carrier.playedSamples;
      controller.send({ type: "speak", text: WORDS });
      await until("the carrier plays", () => carrier.playedSamples - before >= playMs * SAMPLES_PER_MS, {
        deadlineMs: 10_000,
      });
      controller.send({ type: "interrupt" });
      const { heard } = await controller.next("interrupted", index + 1);
      await until("the clear has come", () => clears(carrier) === index + 1);
      const played = carrier.playedSamples - before;
      const playedCharacters = Math.floor(played / SAMPLES_PER_MS / MS_PER_CHARACTER);
      expect(heard.source).toBe("mark");
      expect(Math.abs(wordsIn(heard.end) - wordsIn(playedCharacters))).toBeLessThanOrEqual(1);
      // The carrier plays on until the clear has come, which takes longer on a busy machine.
      expect(Math.abs(heard.ms - played / SAMPLES_PER_MS)).toBeLessThan(1000);
      // What was heard begins with the utterance's first sample: nothing of the one before is left.
      const piece = Buffer.from(carrier.heard()).subarray(before, before + played);
      expect(piece.equals(spoken.subarray(0, played))).toBe(true);
    }
    expect(carrier.violations).toEqual([]);
    await carrier.hangUp();
    const ended = await controller.next("call", 2);
    expect(ended).toMatchObject({ state: "ended", call_id: carrier.call.callId, carrier: "twilio" });
  });

  it("one socket of the bridge speaks, hears the caller, gets the keys, and hangs up", async () => {
    await using controller = await bridge("bridge", "&caller=ulaw_8000");
    const carrier = await dial("twilio", "bridge");
    const started = await controller.next("call");
    expect(started).toMatchObject({
      state: "started",
      call_id: carrier.call.callId,
      carrier: "twilio",
      parameters: { session: "bridge" },
      caller_format: "ulaw_8000",
    });
    const voice = Buffer.from(Uint8Array.from({ length: 160 * 25 }, (_, at) => (at * 7) % 251));
    for (let at = 0; at < voice.length; at += 160) {
      carrier.say(voice.subarray(at, at + 160));
      if (at === 160 * 10) carrier.press("5");
    }
    carrier.press("#");
    await controller.until(() => controller.eventsOf("dtmf").length === 2 && controller.frames.length === 25);
    expect(controller.audio.equals(voice)).toBe(true);
    expect(controller.eventsOf("dtmf").map((event) => event.digit)).toEqual(["5", "#"]);
    controller.send({ type: "speak", text: WORDS });
    await until("the carrier plays", () => carrier.playedSamples > 400 * SAMPLES_PER_MS);
    controller.send({ type: "hangup", call_id: carrier.call.callId });
    expect(await carrier.closed).toBe(1000);
    expect(await controller.next("call", 2)).toMatchObject({ state: "ended", reason: "hangup" });
    expect(carrier.violations).toEqual([]);
  });

  it("hung up mid-word: the bridge gets the event, and the next call in the session is spoken to", async () => {
    await using controller = await bridge("again");
    const first = await dial("twilio", "again");
    await controller.next("call");
    controller.send({ type: "speak", text: WORDS, utterance_id: "a" });
    await until("the carrier plays", () => first.playedSamples > 300 * SAMPLES_PER_MS);
    await first.drop();
    expect(await controller.next("call", 2)).toMatchObject({ state: "ended", reason: "connection closed" });
    controller.send({ type: "interrupt" });
    await controller.next("interrupted");
    const second = await dial("twilio", "again");
    await controller.next("call", 3);
    controller.send({ type: "speak", text: "one two three" });
    const speech = ndjsonSpeech({ text: "one two three", msPerChar: MS_PER_CHARACTER }).audio;
    await until("all is played", () => second.playedSamples === speech.length, { deadlineMs: 10_000 });
    expect(Buffer.from(second.heard()).equals(speech)).toBe(true);
    expect(second.violations).toEqual([]);
    await second.hangUp();
  });

  it("ends with the gateway: in order, and with the code of a shutdown", async () => {
    const own = await gatewayAt(stand.upstreamUrl);
    const carrier = await FakeCarrier.dial({ carrier: "asterisk", url: `${own.wsUrl}/carrier/asterisk` });
    await until("it is there", () => own.counters.connectionsOpened === 1);
    await own.close();
    expect([1000, 1001]).toContain(await carrier.closed);
    expect(carrier.received).toEqual(["HANGUP"]);
    expect(carrier.violations).toEqual([]);
  });

  it("misbehaves: the other one in the same session hears every frame", async () => {
    await using controller = await bridge("two");
    const good = await dial("twilio", "two");
    const bad = await dial("telnyx", "two");
    await controller.next("call", 2);
    controller.send({ type: "speak", text: WORDS });
    await until("both are spoken to", () => good.playedSamples > 1600 && bad.playedSamples > 1600);
    bad.sendRaw('{"event":"media","stream_id":"x","media":{"payload":5}}');
    bad.sendRaw("{{{{");
    expect(await bad.closed).toBe(1008);
    const speech = ndjsonSpeech({ text: WORDS, msPerChar: MS_PER_CHARACTER }).audio;
    await until("all is played", () => good.playedSamples === speech.length, { deadlineMs: 15_000 });
    expect(Buffer.from(good.heard()).equals(speech)).toBe(true);
    expect(good.violations).toEqual([]);
    expect(await controller.next("call", 3)).toMatchObject({ state: "ended", reason: "carrier_protocol" });
    await good.hangUp();
  });
});

describe("every carrier", { timeout: PATIENT_MS }, () => {
  const TEXT = "one two three four five";

  it.concurrent.each(
    CARRIERS.flatMap((carrier) => [
      [carrier, "its own address"] as const,
      [carrier, "the common one"] as const,
    ]),
  )("%s at %s: is spoken to in its way, cut, heard, and hung up", async (carrier, address) => {
    const session = `${carrier}-${address === "the common one" ? "sniffed" : "named"}`;
    await using controller = await bridge(session, "&caller=pcm_16000");
    const path = address === "the common one" ? "/carrier" : `/carrier/${carrier}`;
    const call = await dial(carrier, session, { url: `${stand.gateway.wsUrl}${path}?session=${session}` });
    const started = await controller.next("call");
    expect(started).toMatchObject({ state: "started", carrier });
    controller.send({ type: "speak", text: TEXT, utterance_id: "all" });
    const speech = ndjsonSpeech({ text: TEXT, msPerChar: MS_PER_CHARACTER, format: call.call.format }).audio;
    const bytesPerSample = call.call.format.startsWith("pcm") ? 2 : 1;
    await until("all is played", () => call.playedSamples >= speech.length / bytesPerSample, {
      deadlineMs: 15_000,
    });
    // jambonz keeps samples of -1 for marks.
    const expected = carrier === "jambonz" ? withoutMinusOne(speech) : speech;
    expect(Buffer.from(call.heard()).subarray(0, speech.length).equals(expected)).toBe(true);

    await until("the last utterance is over", () => controller.eventsOf("utterance.done").length === 1);
    const before = call.playedSamples;
    controller.send({ type: "speak", text: WORDS, utterance_id: "cut" });
    await until("it is played", () => call.playedSamples > before + 4000, { deadlineMs: 10_000 });
    controller.send({ type: "interrupt" });
    const { heard } = await controller.next("interrupted");
    expect(heard.source).toBe("mark");
    await until("the player is empty", () => call.player.queuedSamples === 0);

    call.say(new Uint8Array(call.call.callerFormat.startsWith("pcm") ? 640 : 320).fill(0));
    call.say(new Uint8Array(call.call.callerFormat.startsWith("pcm") ? 640 : 320).fill(0));
    call.press("9");
    await controller.until(() => controller.frames.length > 0 && controller.eventsOf("dtmf").length === 1);
    expect(controller.eventsOf("dtmf")[0]?.digit).toBe("9");
    expect(controller.frames[0]).toHaveLength(640);
    controller.send({ type: "hangup" });
    expect(await call.closed).toBe(1000);
    expect(call.violations).toEqual([]);
  });
});

function clears(carrier: FakeCarrier): number {
  return carrier.received.filter((message) => typeof message === "string" && message.includes('"clear"'))
    .length;
}

function withoutMinusOne(pcm: Buffer): Buffer {
  const copy = Buffer.from(pcm);
  for (let at = 0; at < copy.length; at += 2) if (copy.readInt16LE(at) === -1) copy.writeInt16LE(0, at);
  return copy;
}
