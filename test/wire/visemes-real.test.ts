/** Mouth shapes of the embedded voice, through an interruption: what is measured there and not made up by a test. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { VisemeEvent } from "../../src/protocol/events.ts";
import type { VisemeSet } from "../../src/protocol/vocabulary.ts";
import { type RunningService, startService } from "../../src/service/service.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";

const TEXT = "The boat is moving past the beach, my friend. People on the pier wave with both arms.";

function spansOf(events: readonly VisemeEvent[], set: VisemeSet) {
  return events
    .filter((event) => event.set === set)
    .flatMap(({ visemes, vtimes_ms, vdurations_ms }) =>
      visemes.map((viseme, index) => {
        const startMs = vtimes_ms[index] ?? Number.NaN;
        return { viseme, startMs, endMs: startMs + (vdurations_ms[index] ?? Number.NaN) };
      }),
    );
}

describe("visemes of the embedded voice", () => {
  let service: RunningService;
  let gateway: TestGateway;

  beforeAll(async () => {
    service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false });
    gateway = await gatewayAt(service.url, { voice: "" });
  });

  afterAll(async () => {
    await gateway?.close();
    await service?.close();
  });

  it("fit the words and close the lips for b, m and p, in two sets at once", async () => {
    await using client = await TestClient.connect(
      gateway,
      "/live/real?format=pcm_24000&pace=burst&events=words,visemes,visemes-microsoft",
    );
    client.send({ type: "speak", text: TEXT, language_code: "en" });
    const done = await client.next("utterance.done");
    expect(done.outcome).toBe("done");
    const words = client.eventsOf("words").flatMap((event) => event.words);
    expect(words.length).toBe(17);
    for (const [set, closed, silence] of [
      ["oculus", "PP", "sil"],
      ["microsoft", 21, 0],
    ] as const) {
      const spans = spansOf(client.eventsOf("viseme"), set);
      for (const word of words) {
        const its = spans.filter(({ startMs }) => startMs >= word.start_ms && startMs < word.end_ms);
        expect(its[0]?.startMs).toBe(word.start_ms);
        expect(its.at(-1)?.endMs).toBeCloseTo(word.end_ms, 2);
        const hasClosed = its.some(({ viseme }) => viseme === closed);
        expect([word.text, hasClosed]).toEqual([word.text, /[bmp]/i.test(word.text)]);
      }
      spans.slice(1).forEach(({ startMs }, index) => {
        expect(startMs).toBeGreaterThan((spans[index]?.endMs ?? 0) - 0.01);
      });
      // The full stop is a pause of its own, and the mouth is closed in it.
      const friend = words.findIndex(({ text }) => text === "friend");
      const pause = { startMs: words[friend]?.end_ms ?? 0, endMs: words[friend + 1]?.start_ms ?? 0 };
      expect(pause.endMs - pause.startMs).toBeGreaterThan(40);
      expect(spans.find(({ startMs }) => startMs === pause.startMs)?.viseme).toBe(silence);
      expect(spans.at(-1)).toMatchObject({ viseme: silence, startMs: words.at(-1)?.end_ms });
      expect(spans.at(-1)?.endMs).toBeCloseTo(done.end_ms, 2);
    }
  });

  it("go on behind an interruption where the speech goes on", async () => {
    await using client = await TestClient.connect(gateway, "/live/cut?format=pcm_24000&events=words,visemes");
    client.send({ type: "speak", text: TEXT });
    await client.until(() => client.frames.length > 80);
    client.send({ type: "interrupt" });
    const cut = await client.next("interrupted");
    client.send({ type: "resume" });
    const resumed = await client.next("utterance.resumed");
    await client.until(() => client.eventsOf("utterance.done").length >= 2, 30_000);
    const after = client.eventsOf("viseme").filter(({ seq }) => seq > cut.seq);
    const spans = spansOf(after, "oculus");
    const words = client
      .eventsOf("words")
      .filter(({ seq }) => seq > cut.seq)
      .flatMap((event) => event.words);
    expect(words.at(-1)?.text).toBe("arms");
    expect(spans[0]?.startMs).toBeGreaterThanOrEqual(resumed.start_ms);
    for (const word of words) expect(spans.map(({ startMs }) => startMs)).toContain(word.start_ms);
    spans.slice(1).forEach(({ startMs }, index) => {
      expect(startMs).toBeGreaterThan((spans[index]?.endMs ?? 0) - 0.01);
    });
  });
});
