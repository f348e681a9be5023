/** The phrase cache between the real client and the embedded service: speech is the same with it and without. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PhraseCache } from "../../../src/upstream/cache/phrase-cache.ts";
import type {
  SpeechRequest,
  SynthesisChunk,
  SynthesisRequest,
  Upstream,
} from "../../../src/upstream/types.ts";
import type { UpstreamClient } from "../../../src/upstream/upstream-client.ts";
import { until } from "../../helpers/until.ts";
import { type Client, OTHER_VOICE, startClient, VOICE } from "../../service/client.ts";
import { shown } from "./phrase-cache-rig.ts";
import { clientOf, Recorder } from "./rig.ts";

const SPEECH: SpeechRequest = {
  kind: "speech",
  voiceId: VOICE,
  text: "Thank you for calling. It is 5 o'clock; what can I do for you?",
  outputFormat: "pcm_24000",
  wantsTiming: true,
};
const REQUESTS: readonly (readonly [string, SynthesisRequest])[] = [
  ["timed PCM", SPEECH],
  ["bare mu-law", { ...SPEECH, outputFormat: "ulaw_8000", wantsTiming: false }],
  ["timed Opus", { ...SPEECH, outputFormat: "opus_48000_64", voiceSettings: { speed: 1.1 } }],
  [
    "a timed dialogue",
    {
      kind: "dialogue",
      inputs: [
        { text: "Knock knock.", voiceId: VOICE },
        { text: "Who's there?", voiceId: OTHER_VOICE },
      ],
      outputFormat: "ulaw_8000",
      wantsTiming: true,
    },
  ],
];

/** Stands between the cache and the client and writes down what the client says: no two answers of a voice are equal. */
class Tap implements Upstream {
  readonly said: SynthesisChunk[] = [];
  readonly #upstream: Upstream;

  constructor(upstream: Upstream) {
    this.#upstream = upstream;
  }

  open: Upstream["open"] = (request, handlers) =>
    this.#upstream.open(request, {
      head: (head) => handlers.head(head),
      chunk: (chunk) => {
        this.said.push({ ...structuredClone(chunk), audio: Uint8Array.from(chunk.audio) });
        handlers.chunk(chunk);
      },
      end: () => handlers.end(),
      error: (error) => handlers.error(error),
    });
}

async function hear(upstream: Upstream, request: SynthesisRequest): Promise<Recorder> {
  const recorder = new Recorder();
  upstream.open(request, recorder);
  await recorder.over();
  if (recorder.failure !== null) throw recorder.failure;
  return recorder;
}

describe("PhraseCache in front of the embedded service", () => {
  let service: Client;
  let client: UpstreamClient;
  beforeAll(async () => {
    service = await startClient();
    client = clientOf(service.service.url);
  });
  afterAll(async () => {
    await client.close();
    await service[Symbol.asyncDispose]();
  });

  it.each(REQUESTS)(
    "%s: who asks first and who hits both hear what the client says",
    async (_what, request) => {
      const tap = new Tap(client);
      const cache = new PhraseCache({ upstream: tap, maxBytes: 8_000_000 });
      const first = await hear(cache, request);
      const hit = await hear(cache, request);
      expect(cache.stats()).toMatchObject({ hits: 1, misses: 1, entries: 1 });
      expect(hit.bytes).toBeGreaterThan(1000);
      expect(shown(first.chunks)).toEqual(shown(tap.said));
      expect(shown(hit.chunks)).toEqual(shown(tap.said));
      expect(hit.chunks.some(({ alignment }) => alignment !== null)).toBe(request.wantsTiming);
      expect(hit.heads[0]?.requestId).toBe(first.heads[0]?.requestId);
      expect([first.heads[0]?.characterCost === 0, hit.heads[0]?.characterCost]).toEqual([false, 0]);
    },
  );

  it("readers that share a request hear the same, whoever leaves, and the connection is free behind them", async () => {
    const tap = new Tap(client);
    const cache = new PhraseCache({ upstream: tap, maxBytes: 8_000_000 });
    const readers = [new Recorder(), new Recorder(), new Recorder()];
    const open = readers.map((reader) => cache.open(SPEECH, reader));
    expect(client.stats().open + client.stats().queued).toBe(1);
    const [leader, , third] = open;
    const [, second, last] = readers;
    if (leader === undefined || third === undefined || second === undefined || last === undefined) {
      throw new Error("Three readers are expected");
    }
    last.onChunk = () => {
      leader.abort();
      third.pause();
    };
    await second.over();
    expect(shown(second.chunks)).toEqual(shown(tap.said));
    expect(last.isOver).toBe(false);
    last.onChunk = null;
    third.resume();
    await last.over();
    expect(shown(last.chunks)).toEqual(shown(tap.said));
    await until("the connection to be free", () => client.stats().open === 0);
    expect(cache.stats()).toMatchObject({ misses: 1, shared: 2, entries: 1 });
  });

  it("what nobody wants any more ends at the service", async () => {
    const cache = new PhraseCache({ upstream: client, maxBytes: 8_000_000 });
    const readers = [new Recorder(), new Recorder()];
    const open = readers.map((reader) => cache.open(SPEECH, reader));
    for (const synthesis of open) synthesis.abort();
    await until("the connection to be free", () => client.stats().open === 0);
    expect(cache.stats()).toMatchObject({ bytes: 0, entries: 0 });
    expect(readers.map(({ calls }) => calls)).toEqual([[], []]);
  });
});
