/** An upstream that refuses the text around: it is asked once more with less of it. */
import { describe, expect, it } from "vitest";
import { type ErrorCode, GatewayError } from "../../../../src/errors.ts";
import { stage, VOICE } from "../spelling.ts";

type Stage = ReturnType<typeof stage>;

const FIRST = "abc def. ";
const SECOND = "ghi jkl. ";

/** The first piece was answered in full; the second was asked for, with its request id. */
function asked(more: object = {}): Stage {
  const rig = stage();
  for (const text of [FIRST, SECOND, "mno pqr."]) {
    rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u", ...more });
    rig.send({ type: "flush" });
  }
  rig.send({ type: "end" });
  rig.answer(0);
  return rig;
}

/** What each request says of the text before it. */
function contexts(rig: Stage): string[] {
  return rig.requests.map(({ request }) => {
    if (request.kind !== "speech") throw new Error("Not speech");
    return request.previousRequestIds?.join() ?? request.previousText ?? "-";
  });
}

function refuse(rig: Stage, index: number, code: ErrorCode, field?: string): void {
  const error = new GatewayError(code, "Refused", field === undefined ? {} : { field });
  rig.requests[index]?.handlers.error(error);
}

describe("request ids that are refused", () => {
  it.each(["upstream_invalid", "upstream_not_found"] as const)(
    "%s: the piece is asked for at once with text, and so is what follows",
    (code) => {
      const rig = asked();
      expect(contexts(rig)).toEqual(["-", "r"]);
      refuse(rig, 1, code);
      rig.clock.advance(1);
      expect(contexts(rig)).toEqual(["-", "r", FIRST.trim()]);
      expect(rig.requests[2]?.request).toMatchObject({ text: SECOND });
      rig.hearOut();
      expect(contexts(rig)).toEqual(["-", "r", FIRST.trim(), (FIRST + SECOND).trim()]);
      expect(rig.outcomes()).toEqual(["u/done"]);
      expect(rig.listener.eventsOf("error")).toEqual([]);
      expect(rig.counters).toMatchObject({ upstreamErrors: 1, upstreamRetries: 1 });
    },
  );

  it("a failure may be of their making: they go with the first try only", () => {
    const rig = asked();
    for (const index of [1, 2, 3]) {
      refuse(rig, index, "upstream_failed");
      rig.clock.advance(1000);
    }
    expect(contexts(rig)).toEqual(["-", "r", "abc def.", "abc def.", "abc def."]);
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/done"]);
  });

  it("a line that broke is no refusal: the same is asked for again", () => {
    const rig = asked();
    refuse(rig, 1, "upstream_unreachable");
    rig.clock.advance(100);
    expect(contexts(rig)).toEqual(["-", "r", "r"]);
  });

  it("what is refused with text too fails after the second try", () => {
    const rig = asked();
    refuse(rig, 1, "upstream_invalid");
    rig.clock.advance(1);
    refuse(rig, 2, "upstream_invalid");
    rig.hearOut();
    expect(rig.requests).toHaveLength(3);
    expect(rig.outcomes()).toEqual(["u/failed"]);
  });

  it("what is refused without any is not asked for again", () => {
    const rig = stage();
    rig.speak("abc", "u");
    refuse(rig, 0, "upstream_invalid");
    rig.hearOut();
    expect(rig.requests).toHaveLength(1);
    expect(rig.outcomes()).toEqual(["u/failed"]);
  });

  it("the waterfall counts from the request that was answered", () => {
    const rig = asked();
    rig.clock.advance(20);
    refuse(rig, 1, "upstream_invalid");
    rig.clock.advance(10);
    rig.requests[2]?.handlers.requestSent?.();
    rig.clock.advance(5);
    rig.hearOut();
    const [done] = rig.listener.eventsOf("utterance.done");
    const { queued_ms = 0, connected_ms = 0, headers_ms = 0 } = done?.segments[1] ?? {};
    // Its request was given to the client when the first was answered.
    expect([queued_ms, connected_ms, headers_ms]).toEqual([0, 30, 5]);
  });
});

describe("text around that is refused", () => {
  it.each(["previous_text", "next_text"])("%s: the rest is asked for without any", (field) => {
    const rig = asked({ enable_logging: false });
    expect(contexts(rig)).toEqual(["-", "abc def."]);
    refuse(rig, 1, "upstream_invalid", field);
    rig.clock.advance(1);
    expect(rig.requests[2]?.request).not.toHaveProperty("nextText");
    rig.hearOut();
    expect(contexts(rig)).toEqual(["-", "abc def.", "-", "-"]);
    expect(rig.outcomes()).toEqual(["u/done"]);
  });
});
