/** Sessions of many kinds on a gateway, for recording: what their clients do, one function each. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type FakeScript,
  isTimed,
  refusal,
  speaking,
  speechAnswer,
  speechFor,
} from "../helpers/fake-upstream.ts";
import { TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { FakeCarrier } from "../kit/carriers/fake-carrier.ts";

const WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india";
const MS_PER_CHAR = 20;

/** Speaks; what a text begins with says how else it answers. */
export function scriptOf(): FakeScript {
  const speak = speaking({ msPerChar: MS_PER_CHAR, charsPerChunk: 7 });
  const asked = new Map<string, number>();
  return (request, index) => {
    const { text = "" } = (request.json ?? {}) as { readonly text?: string };
    const times = (asked.get(text) ?? 0) + 1;
    asked.set(text, times);
    const speech = (): ReturnType<typeof speechFor> => speechFor(request, { msPerChar: MS_PER_CHAR });
    if (text.startsWith("refused")) return refusal(422, "invalid");
    if (text.startsWith("busy") && times === 1) return refusal(429, "too_many_concurrent_requests");
    if (text.startsWith("failing") && times === 1) return refusal(503, "unavailable");
    if (text.startsWith("broken") && times === 1)
      return speechAnswer(
        { ...speech(), chunks: speech().chunks.slice(0, 1) },
        { isTimed: isTimed(request), tail: ["reset"] },
      );
    return speak(request, index);
  };
}

type Play = (at: TestGateway, session: string) => Promise<void>;

async function speakerOf(gateway: TestGateway, session: string, query: string): Promise<TestClient> {
  return await TestClient.connect(gateway, `/live/${session}?${query}`);
}

function says(query: string, message: object): Play {
  return async (gateway, session) => {
    await using client = await speakerOf(gateway, session, query);
    client.send({ type: "speak", text: WORDS, ...message });
    await client.next("utterance.done");
  };
}

export const PLAYS: Readonly<Record<string, Play>> = {
  pcm: says("format=pcm_24000&events=words,characters,segments", {}),
  ulaw: says("format=ulaw_8000&frame_ms=40&events=words,cues,normalized", {}),
  opus: async (gateway, session) => {
    await using other = await speakerOf(gateway, session, "format=pcm_24000");
    // Speech that is made louder is asked for as samples: the gateway encodes it.
    await says("format=opus_48000&events=words", { loudness_lufs: -20 })(gateway, session);
    await other.next("utterance.done");
  },
  rtp: says("format=alaw_8000&framing=rtp&events=none", {}),
  burst: says("format=pcm_16000&pace=burst&events=words", {}),
  levelled: says("format=pcm_24000", { loudness_lufs: -16 }),
  emoji: says("format=none&events=words,characters&offsets=cp", { text: "Waves 👋 and smiles 🙂 to all." }),
  refused: says("format=ulaw_8000", { text: "refused by the upstream." }),
  busy: says("format=ulaw_8000", { text: "busy at first, then spoken." }),
  failing: says("format=ulaw_8000", { text: "failing at first, then spoken." }),
  broken: says("format=ulaw_8000&events=words", { text: "broken in the middle of it, and made good." }),

  tokens: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=ulaw_8000&events=words");
    for (const token of WORDS.split(" ")) {
      client.send({ type: "text", text: `${token} `, utterance_id: "u" });
      await sleep(15);
    }
    client.send({ type: "flush", utterance_id: "u" });
    client.send({ type: "text", text: "And an end.", utterance_id: "u" });
    client.send({ type: "end", utterance_id: "u" });
    client.send({ type: "end", utterance_id: "u" });
    await client.next("error");
    await client.next("utterance.done");
  },
  interrupted: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=ulaw_8000&events=words");
    client.send({ type: "speak", text: WORDS, utterance_id: "u" });
    client.send({ type: "speak", text: "Second.", utterance_id: "v" });
    await client.until(() => client.frames.length > 15);
    client.send({ type: "played", at_ms: 100 });
    client.send({ type: "interrupt", utterance_id: "u", keep_ms: 60 });
    await client.next("interrupted");
    client.send({ type: "resume", utterance_id: "u" });
    await client.next("utterance.done", 3);
  },
  marks: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=pcm_8000&events=marks");
    client.send({ type: "speak", text: "One." });
    client.send({ type: "mark", name: "m" });
    await client.next("utterance.started");
    client.send({ type: "speak", text: "Two.", replace: "queued" });
    await client.next("mark");
    client.send({ type: "played", mark: "m" });
    client.send({ type: "ping", id: 1 });
    await client.next("utterance.done", 2);
  },
  dialogue: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=pcm_24000&events=words,segments");
    const inputs = [
      { text: "How are you?", voice_id: "tone-a" },
      { text: "Well, thanks.", voice_id: "tone-b" },
    ];
    client.send({ type: "dialogue", inputs });
    await client.next("utterance.done");
  },
  listeners: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=ulaw_8000&events=words,presence");
    await using other = await speakerOf(gateway, session, "role=listener&format=pcm_24000&lead_ms=400");
    client.send({ type: "speak", text: WORDS });
    await client.until(() => client.frames.length > 10);
    await using late = await speakerOf(gateway, session, "role=listener&format=opus_48000&events=words");
    client.send({ type: "configure", format: "pcm_16000", events: "words,characters".split(",") });
    await late.next("utterance.done");
    await other.next("utterance.done");
    await client.next("utterance.done");
  },
  cameBack: async (gateway, session) => {
    await using speaker = await speakerOf(gateway, session, "role=speaker&format=none");
    const lost = await speakerOf(gateway, session, "role=listener&format=ulaw_8000&events=words");
    const { resume_token } = await lost.next("hello");
    speaker.send({ type: "speak", text: `${WORDS} ${WORDS}` });
    await lost.until(() => lost.frames.length > 10);
    lost.socket.terminate();
    await lost.untilClosed();
    const query = `role=listener&format=ulaw_8000&events=words&resume=${resume_token}`;
    await using back = await speakerOf(gateway, session, query);
    await back.next("utterance.done");
  },
  slow: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=none&events=none");
    const slow = await speakerOf(gateway, session, "role=listener&format=pcm_48000&pace=burst&events=words");
    slow.socket.pause();
    client.send({ type: "speak", text: `${WORDS}. `.repeat(12) });
    await client.next("utterance.started");
    await sleep(600);
    slow.socket.resume();
    await slow.next("utterance.done");
    slow.socket.terminate();
  },
  sounds: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=pcm_16000");
    client.send({
      type: "play",
      under: true,
      sound: { kind: "noise", ms: 200 },
      loop: true,
      utterance_id: "rain",
    });
    client.send({ type: "prepare", prepared_id: "greeting", text: "Hello there." });
    await client.next("prepared");
    client.send({ type: "play", prepared_id: "greeting" });
    client.send({ type: "play", sound: { kind: "tone", hertz: 440, ms: 200 } });
    client.send({ type: "play", audio: Buffer.alloc(800, 60).toString("base64"), format: "ulaw_8000" });
    await client.next("utterance.done", 3);
    client.send({ type: "stop", fade_ms: 40 });
    await client.next("sound.ended");
  },
  http: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=ulaw_8000&events=words,cues");
    const post = (path: string, body: object): Promise<Response> =>
      fetch(`${gateway.url}/live/${session}/${path}`, { method: "POST", body: JSON.stringify(body) });
    const cues = await fetch(`${gateway.url}/live/${session}/captions`);
    const audio = await fetch(`${gateway.url}/live/${session}/audio.wav`);
    await post("speak", { text: WORDS });
    await client.until(() => client.frames.length > 20);
    await post("interrupt", {});
    await client.next("utterance.done");
    await Promise.all([cues.body?.cancel(), audio.body?.cancel()]);
  },
  called: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "role=speaker&events=words,call,dtmf&format=none");
    const url = `${gateway.wsUrl}/carrier/twilio`;
    const carrier = await FakeCarrier.dial({ carrier: "twilio", url, call: { parameters: { session } } });
    await client.next("call");
    client.send({ type: "speak", text: WORDS });
    await until("the carrier plays", () => carrier.playedSamples > 3000);
    client.send({ type: "interrupt" });
    await client.next("interrupted");
    client.send({ type: "speak", text: "Bye." });
    await client.next("utterance.done", 2);
    client.send({ type: "hangup" });
    await client.next("call", 2);
  },
  mistakes: async (gateway, session) => {
    await using client = await speakerOf(gateway, session, "format=ulaw_8000&strange=yes");
    client.send("no json");
    client.send({ type: "interrupt" });
    client.send({ type: "speak", text: "Twice.", utterance_id: "u", unknown_field: 1 });
    client.send({ type: "speak", text: "Twice.", utterance_id: "u" });
    client.send({ type: "resume" });
    await client.next("error", 4);
    await client.next("utterance.done");
    client.send({ type: "close" });
    await client.untilClosed();
  },
};
