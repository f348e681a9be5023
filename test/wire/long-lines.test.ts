/** An upstream whose record never ends, or is far longer than any: bounded, said with a code, and nobody else's matter. */
import { expect, it, vi } from "vitest";
import {
  type FakeRequest,
  type FakeStep,
  isTimed,
  speaking,
  speechAnswer,
  speechFor,
  startFakeUpstream,
} from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

vi.setConfig({ testTimeout: 60_000 });

const MEGABYTE = 1_048_576;
const LINE_MB = 10;
const BEGINNING = '{"audio_base64":"';
const PIECE = Buffer.alloc(MEGABYTE, "A");
const TEN_MB: readonly FakeStep[] = [BEGINNING, ...Array.from({ length: LINE_MB }, () => PIECE), '"}\n'];
/** The gateway's bound of a line, and what the two sockets hold on their way. */
const MOST_SENT_BYTES = 32 * MEGABYTE;
const CALM = "What others are sent does not matter here at all.";

/** Speaks; but to `bad` with that line, behind `before` records of speech. */
function withLine(steps: readonly FakeStep[], before: number) {
  const speak = speaking({ msPerChar: 20 });
  return (request: FakeRequest, index: number) => {
    if (!request.path.includes("/bad/")) return speak(request, index);
    const answer = speechAnswer(speechFor(request, { msPerChar: 20 }), { isTimed: isTimed(request) });
    return { ...answer, body: [...(answer.body ?? []).slice(0, before), ...steps] };
  };
}

it.each([
  ["of 10 MB", TEN_MB],
  ["that never ends", [BEGINNING, { endless: PIECE }]],
] as const)(
  "a line %s: the utterance fails with a code, and another session hears all of its own",
  async (_name, steps) => {
    await using upstream = await startFakeUpstream(withLine(steps, 0));
    await using gateway = await gatewayAt(upstream.url);
    await using calm = await TestClient.connect(gateway, "/live/calm?format=ulaw_8000&lead_ms=0");
    await using bad = await TestClient.connect(gateway, "/live/bad?format=ulaw_8000&lead_ms=0");
    calm.send({ type: "speak", text: CALM });
    await calm.next("utterance.started");
    bad.send({ type: "speak", text: "This one gets a line that nobody can take.", voice_id: "bad" });
    const { outcome, error } = await bad.next("utterance.done");
    expect([outcome, error?.code]).toEqual(["failed", "upstream_protocol"]);
    const asked = upstream.requests.filter(({ path }) => path.includes("/bad/"));
    await until("the gateway has ended what it asked for", () =>
      asked.every((one) => one.isFinished || one.abortedAtMs !== null),
    );
    for (const { bytesWritten } of asked) expect(bytesWritten).toBeLessThan(MOST_SENT_BYTES);
    const done = await calm.next("utterance.done");
    expect(done).toMatchObject({ outcome: "done" });
    expect(calm.eventsOf("error")).toEqual([]);
    expect(calm.eventsOf("warning")).toEqual([]);
    // The session goes on.
    bad.send({ type: "speak", text: "And this one is spoken again." });
    expect(await bad.next("utterance.done", 2)).toMatchObject({ outcome: "done" });
  },
);

it("a line of 10 MB in the middle of speech: the rest is asked for again, and every word is said", async () => {
  await using upstream = await startFakeUpstream(withLine(TEN_MB, 2));
  await using gateway = await gatewayAt(upstream.url);
  await using bad = await TestClient.connect(gateway, "/live/bad?format=ulaw_8000&lead_ms=0");
  const text = "This one gets a line that nobody can take.";
  bad.send({ type: "speak", text, voice_id: "bad" });
  expect(await bad.next("utterance.done")).toMatchObject({ outcome: "done" });
  expect(bad.eventsOf("warning").map(({ code }) => code)).toContain("speech_recovered");
  const words = bad.eventsOf("words").flatMap((event) => event.words.map((word) => word.text));
  expect([...new Set(words)]).toEqual(text.match(/[A-Za-z]+/g));
});
