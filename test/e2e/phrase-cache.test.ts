/** A gateway that keeps phrases: what is said again is the same to the sample, and the upstream is not asked. */
import { expect, it } from "vitest";
import type { Word } from "../../src/protocol/events.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const TEXT = "Thank you for calling. What can I do for you?";

it("says a phrase again from memory: same audio, same words, nothing billed", async () => {
  await using upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
  await using gateway = await gatewayAt(upstream.url, { phraseCacheMb: 8 });
  const heard: { audio: Buffer; words: Word[]; billed: number | null }[] = [];
  for (const session of ["first", "second"]) {
    await using client = await TestClient.connect(gateway, `/live/${session}?format=ulaw_8000&pace=burst`);
    client.send({ type: "speak", text: TEXT });
    const { characters_billed } = await client.next("utterance.done");
    const words = client.eventsOf("words").flatMap((event) => event.words);
    heard.push({ audio: client.audio, words, billed: characters_billed });
  }
  const [first, second] = heard;
  expect(first?.words.map(({ text }) => text)).toEqual(TEXT.match(/\w+/g));
  expect(second?.audio.equals(first?.audio ?? Buffer.alloc(0))).toBe(true);
  expect(second?.words).toEqual(first?.words);
  expect(first?.billed).toBeGreaterThan(0);
  expect(second?.billed).toBe(0);
  const asked = upstream.requests.length;
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  expect(metrics).toContain(`voicewire_phrases_total{outcome="hit"} ${asked}`);
  expect(metrics).toContain(`voicewire_phrases_total{outcome="miss"} ${asked}`);
  expect(metrics).toContain(`voicewire_phrases ${asked}`);
  // The share of failures is one of what left.
  expect(metrics).toContain(`voicewire_upstream_requests_total ${asked}\n`);
});

it("keeps nothing unless it is switched on", async () => {
  await using upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
  await using gateway = await gatewayAt(upstream.url);
  for (const session of ["first", "second"]) {
    await using client = await TestClient.connect(gateway, `/live/${session}?format=ulaw_8000&pace=burst`);
    client.send({ type: "speak", text: "Hello." });
    await client.next("utterance.done");
  }
  expect(upstream.requests).toHaveLength(2);
  expect(await (await fetch(`${gateway.opsUrl}/metrics`)).text()).not.toContain("voicewire_phrases");
});
