/**
 * A voice at two services, the first of which dies at each of many places of its answer: the other one goes on with the next
 * word. No word is lost and none is said twice, in the events and in the sound.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { UtteranceDoneEvent, Word } from "../../../src/protocol/events.ts";
import { readUpstreamsFile } from "../../../src/upstream/services/upstreams-file.ts";
import type { FakeScript } from "../../helpers/fake-answer.ts";
import { type FakeUpstream, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../../helpers/start-gateway.ts";
import { toldWords } from "../../kit/told-words.ts";
import { countTones } from "../../kit/tones.ts";
import { CARTESIA_KEY, CARTESIA_VOICE, cartesia } from "../../kit/vendors/cartesia.ts";
import { dyingAt } from "../../kit/vendors/dying.ts";
import { KOKORO_VOICE, kokoro } from "../../kit/vendors/kokoro.ts";
import { OPENAI_VOICE, openAi } from "../../kit/vendors/openai.ts";
import { wordsOf } from "../../kit/vendors/spoken.ts";
import { posts } from "./rig.ts";

vi.setConfig({ testTimeout: 120_000 });

const TEXT = "The quick brown fox jumps over the lazy dog, and nobody dares to wake it.";
const RATE = 24_000;
const PLACES = 40;
const VOICES = {
  anna: [`cartesia:${CARTESIA_VOICE}`, `kokoro:${KOKORO_VOICE}`],
  berta: [`kokoro:${KOKORO_VOICE}`, `cartesia:${CARTESIA_VOICE}`],
  clara: [`local:${OPENAI_VOICE}`, `cartesia:${CARTESIA_VOICE}`],
  doris: [`cartesia:${CARTESIA_VOICE}`, `local:${OPENAI_VOICE}`],
};

interface Said {
  readonly words: readonly Word[];
  readonly audio: Buffer;
  readonly done: UtteranceDoneEvent | undefined;
  readonly recoveries: number;
}

function expectWhole({ done, words, audio }: Said, where: string): void {
  expect(done?.error, where).toBeUndefined();
  expect(done, where).toMatchObject({ outcome: "done" });
  expect(
    words.map(({ text }) => text.replace(/\W/g, "")),
    where,
  ).toEqual(wordsOf(TEXT));
  expect(
    words.every(({ text, start, end }) => TEXT.slice(start, end) === text),
    where,
  ).toBe(true);
  const times = words.flatMap(({ start_ms, end_ms }) => [start_ms, end_ms]);
  expect(times, where).toEqual([...times].sort((a, b) => a - b));
  expect(countTones(audio, RATE), where).toBe(wordsOf(TEXT).length);
}

describe("a voice whose upstream dies while it speaks", () => {
  const vendors: Record<"first" | "cartesia" | "kokoro" | "local", FakeUpstream | undefined> = {
    first: undefined,
    cartesia: undefined,
    kokoro: undefined,
    local: undefined,
  };
  let gateway: TestGateway;

  beforeAll(async () => {
    vendors.first = await startFakeUpstream();
    vendors.cartesia = await startFakeUpstream(cartesia());
    vendors.kokoro = await startFakeUpstream(kokoro());
    vendors.local = await startFakeUpstream(openAi());
    const upstreams = [
      { name: "cartesia", url: vendors.cartesia.url, "key-env": "CARTESIA_API_KEY" },
      { name: "kokoro", url: vendors.kokoro.url },
      { name: "local", service: "openai", url: vendors.local.url },
    ];
    const file = JSON.stringify({ upstreams, voices: VOICES });
    const { services, voices } = readUpstreamsFile(file, { env: () => CARTESIA_KEY, file: () => "" });
    gateway = await gatewayAt(vendors.first.url, { graceMs: 0 }, { services, voices });
  });

  afterAll(async () => {
    await gateway?.close();
    for (const vendor of Object.values(vendors)) await vendor?.close();
  });

  async function say(session: string, command: object): Promise<Said> {
    await using client = await TestClient.connect(gateway, `/live/${session}?format=pcm_${RATE}&pace=burst`);
    client.send(command);
    await client.next("utterance.done");
    const [done] = client.eventsOf("utterance.done");
    return { ...toldWords(client.events), audio: client.audio, done };
  }

  /** A request that is answered: what happens at one place is not to be felt at the next. */
  async function mend(script: FakeScript, vendor: FakeUpstream, voice: string, at: string): Promise<void> {
    vendor.use(script);
    await say(`mend-${at}`, { type: "speak", text: "Fine.", voice_id: voice });
  }

  it.each([
    ["anna", "cartesia", cartesia()],
    ["berta", "kokoro", kokoro()],
  ] as const)("%s at %s: at each of 40 places", async (voice, name, script) => {
    const vendor = vendors[name] as FakeUpstream;
    let recovered = 0;
    for (let place = 0; place < PLACES; place += 1) {
      const where = `${voice} killed at place ${place}`;
      await mend(script, vendor, VOICES[voice][0] ?? "", `${voice}-${place}`);
      const asked = posts(vendor);
      vendor.use(dyingAt(script, place, PLACES));
      const said = await say(`${voice}-${place}`, { type: "speak", text: TEXT, voice_id: voice });
      expectWhole(said, where);
      // What it has begun it does not go on with.
      expect(posts(vendor) - asked, where).toBe(1);
      recovered += said.recoveries;
    }
    expect(recovered).toBeGreaterThan(PLACES / 2);
    const metrics = await gateway.metrics();
    expect(metrics).toMatch(
      new RegExp(`voicewire_voice_switches_total\\{voice="${voice}",region="${name}"\\} \\d\\d`),
    );
  });

  it("doris: an upstream without times goes on, to the word", async () => {
    const vendor = vendors.cartesia as FakeUpstream;
    for (let place = 1; place < PLACES; place += 6) {
      await mend(cartesia(), vendor, VOICES.doris[0] ?? "", `doris-${place}`);
      vendor.use(dyingAt(cartesia(), place, PLACES));
      expectWhole(
        await say(`doris-${place}`, { type: "speak", text: TEXT, voice_id: "doris" }),
        `place ${place}`,
      );
    }
  });

  it("clara: where its own times are not known it goes on whole, or fails and says how much was heard", async () => {
    const vendor = vendors.local as FakeUpstream;
    let failed = 0;
    for (let place = 0; place < PLACES; place += 3) {
      const where = `clara killed at place ${place}`;
      await mend(openAi(), vendor, VOICES.clara[0] ?? "", `clara-${place}`);
      vendor.use(dyingAt(openAi(), place, PLACES));
      const said = await say(`clara-${place}`, { type: "speak", text: TEXT, voice_id: "clara" });
      if (said.done?.outcome === "done") {
        expectWhole(said, where);
        continue;
      }
      failed += 1;
      expect(said.done, where).toMatchObject({ outcome: "failed", error: { code: "upstream_truncated" } });
      // What was heard was the beginning of it, and nothing of it twice.
      const tones = countTones(said.audio, RATE);
      expect(tones, where).toBeLessThanOrEqual(wordsOf(TEXT).length);
      // Where the words are is a guess: it says no more than a word too many.
      const heard = wordsOf(TEXT.slice(0, said.done?.characters_spoken ?? 0)).length;
      expect(heard, where).toBeLessThanOrEqual(tones + 1);
    }
    expect(failed).toBeGreaterThan(0);
    vendor.use(openAi());
    const next = await say("clara-next", { type: "speak", text: TEXT, voice_id: "clara" });
    expectWhole(next, "the next utterance");
  });

  it("a dialogue goes on with the line that broke off, at the next word", async () => {
    const vendor = vendors.cartesia as FakeUpstream;
    const inputs = [
      { text: "The quick brown fox jumps ", voice_id: "anna" },
      { text: "over the lazy dog, and ", voice_id: "berta" },
      { text: "nobody dares to wake it.", voice_id: "anna" },
    ];
    for (let place = 1; place < PLACES; place += 5) {
      await mend(cartesia(), vendor, VOICES.anna[0] ?? "", `dialogue-${place}`);
      vendor.use(dyingAt(cartesia(), place, PLACES));
      expectWhole(await say(`dialogue-${place}`, { type: "dialogue", inputs }), `place ${place}`);
    }
  });

  it("an interruption behind the switch has the receipt of one speech, and goes on from there", async () => {
    const vendor = vendors.cartesia as FakeUpstream;
    await mend(cartesia(), vendor, VOICES.anna[0] ?? "", "cut");
    vendor.use(dyingAt(cartesia(), 12, PLACES));
    await using client = await TestClient.connect(gateway, `/live/cut?format=pcm_${RATE}`);
    client.send({ type: "speak", text: TEXT, voice_id: "anna", utterance_id: "u" });
    const { start = 0 } = await client.next("warning");
    // Two words behind the switch.
    const end = TEXT.indexOf(" ", TEXT.indexOf(" ", start + 1) + 1);
    await client.until(() =>
      client.eventsOf("words").some(({ words }) => words.some((word) => word.start > end)),
    );
    await client.until(() => client.frames.length > 100);
    client.send({ type: "interrupt" });
    const { heard, unheard_text } = await client.next("interrupted");
    expect(`${heard.text}${unheard_text}`).toBe(TEXT);
    expect(heard.text.length).toBeGreaterThan(start);
    expect(unheard_text).not.toBe("");
    client.send({ type: "resume" });
    const done = await client.next("utterance.done", 2);
    expect(done).toMatchObject({ utterance_id: "u", outcome: "done" });
  });
});
