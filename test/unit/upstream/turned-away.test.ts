/** A 429 that is not handed on: when it is asked again, and that a pause does not keep it from that. */
import { describe, expect, it } from "vitest";
import { turnedAwayDelayMs } from "../../../src/upstream/transport/concurrency-answers.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { jsonAnswer, refusal, speaking, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { until } from "../../helpers/until.ts";
import { clientOf, Recorder, SPEECH, turns } from "./rig.ts";

describe("turnedAwayDelayMs()", () => {
  const DATE = "Fri, 21 Nov 2025 10:00:00 GMT";
  it.each([
    [{}, 0, 50],
    [{}, 3, 400],
    [{}, 99, 1600],
    [{ "retry-after": "2" }, 0, 2000],
    [{ "retry-after": "1.5" }, 0, 1500],
    [{ "retry-after": ["3", "4"] }, 0, 3000],
    [{ "retry-after": "0" }, 5, 50],
    [{ "retry-after": "Fri, 21 Nov 2025 10:00:07 GMT", date: DATE }, 0, 7000],
    [{ "retry-after": "Fri, 21 Nov 2025 10:00:07 GMT" }, 1, 100],
    [{ "retry-after": "soon", date: DATE }, 2, 200],
  ])("%j, %i times before: %i ms", (headers, timesBefore, ms) => {
    expect(turnedAwayDelayMs(headers, timesBefore)).toBe(ms);
  });
});

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

describe("a request that is turned away", () => {
  it("waits as long as a Retry-After date says", async () => {
    await using server = await startFakeUpstream((request, index) =>
      index > 0
        ? speaking()(request, index)
        : jsonAnswer(
            429,
            {},
            { date: "Fri, 21 Nov 2025 10:00:00 GMT", "retry-after": "Fri, 21 Nov 2025 10:00:05 GMT" },
          ),
    );
    const clock = new FakeClock();
    await using client = clientOf(server.url, { clock, patienceMs: 20_000 });
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    await until("the first answer", () => server.requests[0]?.isFinished === true);
    await until("its place to be free", () => client.stats().open === 0);
    clock.advance(4900);
    await turns();
    expect(server.requests).toHaveLength(1);
    clock.advance(100);
    await recorder.over();
    expect(recorder.calls).toEqual(["sent", "turned away", "sent", "head", "chunk", "end"]);
  });

  it.each(["before it is sent", "with its answer on the way", "while the 429 is read"])(
    "and paused %s is asked again, and stays paused",
    async (when) => {
      const answer = gate();
      const rest = gate();
      // Longer than what a socket reads ahead: paused, its end would never come.
      const long = "x".repeat(300_000);
      await using server = await startFakeUpstream(async (request, index) => {
        if (index > 0) return speaking()(request, index);
        await answer.opened;
        return { ...refusal(429, "system_busy"), body: [long, { until: rest.opened }, long] };
      });
      await using client = clientOf(server.url, { patienceMs: 20_000 });
      const recorder = new Recorder();
      const synthesis = client.open(SPEECH, recorder);
      if (when === "before it is sent") synthesis.pause();
      await until("the request", () => server.requests.length === 1);
      if (when === "with its answer on the way") synthesis.pause();
      answer.open();
      await until("the governor to know", () => client.regions()[0]?.limits.length === 1);
      synthesis.pause();
      rest.open();
      await until("the second request", () => server.requests.length === 2);
      await until("the head", () => recorder.heads.length === 1);
      await turns(50);
      expect(recorder.bytes).toBe(0);
      synthesis.resume();
      await recorder.over();
      expect(recorder.isEnded).toBe(true);
    },
  );
});
