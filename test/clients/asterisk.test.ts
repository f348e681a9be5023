/**
 * A real Asterisk calls the gateway: chan_websocket, AudioSocket, RTP. What it records is held against the speech,
 * frame for frame; how to have one is in docs/telephony.md.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../helpers/until.ts";
import { findAsterisk } from "./asterisk/installation.ts";
import { ASTERISK_FORMATS, heardMs, soundOf } from "./asterisk/recording.ts";
import { PATIENCE, Rig } from "./asterisk/rig.ts";
import { audioSocket, audioSocketChannel, KEYS, rtp, Talk, voiceIn, webSocket } from "./asterisk/talk.ts";

const TEXT =
  "The quick brown fox jumps over the lazy dog. Then it went home, and slept until the sun came up again.";
const SHORT = "That was all of it.";
const PATIENT_MS = 90_000;
/** Asterisk asks for silence at 900 frames, and drops what comes at 1000. */
const ALMOST_FULL_FRAMES = 990;
/** Without a flush it would be all that the gateway sends ahead, 500 ms, and a full queue of 20 s. */
const CUT_WITHIN_MS = 300;
const FULL_QUEUE_MS = 17_000;

const installation = findAsterisk();
const name =
  installation === null ? "(skipped: no Asterisk 22 in ASTERISK_ROOT or PATH)" : installation.version;

describe.skipIf(installation === null)(`Asterisk ${name}`, { timeout: PATIENT_MS }, () => {
  let rig: Rig;
  beforeAll(async () => {
    if (installation !== null) rig = await Rig.start(installation);
  }, PATIENT_MS);
  afterAll(() => rig?.[Symbol.asyncDispose](), PATIENT_MS);

  const websockets = [
    ["chan_websocket, JSON, ulaw", webSocket()],
    ["chan_websocket, plain text, slin16", webSocket({ control: "plain-text", format: "pcm_16000" })],
  ] as const;
  const audioSockets = [
    ["AudioSocket, the application", audioSocket],
    ["AudioSocket, the channel, slin16", audioSocketChannel],
  ] as const;

  describe.each([...websockets, ...audioSockets, ["RTP, externalMedia", rtp] as const])("%s", (_, way) => {
    it("records every frame of the speech, in order, and nothing else", async () => {
      await using talk = await Talk.begin(rig, way);
      expect(talk.application.eventsOf("call")[0]).toMatchObject({
        state: "started",
        carrier: way.carrier,
        caller_format: way.format,
      });
      const before = await rig.marksOf(way);
      const sound = soundOf(await talk.say(TEXT), way.format);
      expect(sound.length).toBeGreaterThan(ASTERISK_FORMATS[way.format].frameBytes * 150);
      await talk.playedSince(before);
      expect((await talk.recorded()).equals(sound)).toBe(true);
    });

    it("is cut off soon by an interruption, and the next utterance is whole", async () => {
      await using talk = await Talk.begin(rig, way);
      const before = await rig.marksOf(way);
      talk.application.send({ type: "speak", text: TEXT });
      await rig.untilMarks(way, ({ played }) => played - before.played >= 6);
      talk.application.send({ type: "interrupt" });
      const { heard } = await talk.application.next("interrupted");
      expect(heard.source).toBe("mark");
      await talk.passes(1000);
      const speech = talk.listener.audio;
      const afterCut = await rig.marksOf(way);
      const next = soundOf(await talk.say(SHORT, 2), way.format);
      await talk.playedSince(afterCut);
      const recorded = await talk.recorded();
      const cut = recorded.subarray(0, -next.length);
      expect(recorded.subarray(-next.length).equals(next)).toBe(true);
      expect(soundOf(speech, way.format).subarray(0, cut.length).equals(cut)).toBe(true);
      expect(Math.abs(heardMs(cut, speech, way.format) - heard.ms)).toBeLessThan(CUT_WITHIN_MS);
    });

    it("the caller's voice reaches the application, every sample", async () => {
      await using talk = await Talk.begin(rig, way, "say");
      await talk.go();
      const voice = soundOf(voiceIn(way.format), way.format);
      const heard = () => soundOf(talk.application.audio, way.format);
      await talk.application.until(() => heard().length >= voice.length, PATIENCE.deadlineMs);
      await talk.passes(200);
      expect(heard().equals(voice)).toBe(true);
    });
  });

  it("RTP, externalMedia: a caller who hangs up leaves the session, as Asterisk closes its port", async () => {
    await using talk = await Talk.begin(rig, rtp);
    await rig.asterisk.hangUp(talk.channel);
    expect(await talk.application.next("call", 2)).toMatchObject({
      state: "ended",
      carrier: "rtp",
      reason: "peer unreachable",
    });
  });

  describe.each([...websockets, ...audioSockets])("%s", (_, way) => {
    it("hangs up when the application does", async () => {
      await using talk = await Talk.begin(rig, way);
      talk.application.send({ type: "hangup" });
      expect(await talk.application.next("call", 2)).toMatchObject({ state: "ended", reason: "hangup" });
      await rig.untilNoChannels();
    });

    it("a caller who hangs up leaves the session", async () => {
      await using talk = await Talk.begin(rig, way);
      await talk.end();
      expect(await talk.application.next("call", 2)).toMatchObject({ state: "ended", carrier: way.carrier });
      talk.application.send({ type: "ping" });
      await talk.application.next("pong");
    });

    it("emits the caller's keys", async () => {
      await using talk = await Talk.begin(rig, way, "keys");
      await talk.go();
      await talk.application.next("dtmf", KEYS.length);
      expect(talk.application.eventsOf("dtmf").map(({ digit }) => digit)).toEqual([...KEYS]);
    });
  });

  describe("chan_websocket through a relay", () => {
    const way = webSocket({ connection: "relayed" });
    const silence = Buffer.alloc(160, 0xff);
    const count = (text: string): number => rig.relay.fromAsterisk.filter((one) => one.includes(text)).length;

    it("the gateway waits from MEDIA_XOFF to MEDIA_XON, and nothing is lost", async () => {
      await using talk = await Talk.begin(rig, way);
      const before = await rig.marksOf(way);
      rig.relay.command("PAUSE_MEDIA");
      rig.relay.inject(silence, ALMOST_FULL_FRAMES);
      await until("it is full", () => count("MEDIA_XOFF") > 0, PATIENCE);
      talk.application.send({ type: "speak", text: TEXT });
      await talk.listener.next("utterance.done");
      // All of it would be sent by now, and lost.
      await talk.passes(1000);
      expect(count("MEDIA_XON")).toBe(0);
      rig.relay.command("CONTINUE_MEDIA");
      await talk.playedSince(before);
      const sound = soundOf(talk.listener.audio, way.format);
      expect((await talk.recorded()).equals(sound)).toBe(true);
    });

    it("a full queue is empty after an interruption", async () => {
      await using talk = await Talk.begin(rig, way);
      rig.relay.inject(silence, ALMOST_FULL_FRAMES);
      talk.application.send({ type: "speak", text: TEXT });
      await until("it is full", () => count("MEDIA_XOFF") > 0, PATIENCE);
      await talk.listener.until(() => talk.listener.frames.length > 0, PATIENCE.deadlineMs);
      await talk.passes(100);
      talk.application.send({ type: "interrupt" });
      await talk.application.next("interrupted");
      const before = await rig.marksOf(way);
      const cutLength = talk.listener.audio.length;
      await talk.say(SHORT, 2);
      await talk.playedSince(before);
      const next = soundOf(talk.listener.audio.subarray(cutLength), way.format);
      expect((await talk.recorded()).equals(next)).toBe(true);
      expect(talk.recording.ms).toBeLessThan(FULL_QUEUE_MS);
    });

    it("gets HANGUP", async () => {
      await using talk = await Talk.begin(rig, way);
      talk.application.send({ type: "hangup" });
      await talk.application.next("call", 2);
      await until("it is sent", () => rig.relay.fromGateway.at(-1) === '{"command":"HANGUP"}', PATIENCE);
    });
  });
});
