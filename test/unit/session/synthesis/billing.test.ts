/** `characters_billed`: what the upstream says that it bills, summed over every request that was made for an utterance. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import { CHAR_MS, stage, VOICE } from "../spelling.ts";

/** Each request costs 10 (`FakeRequest.head`). */
function billed(rig: ReturnType<typeof stage>): (number | null)[] {
  return rig.listener.eventsOf("utterance.done").map((event) => event.characters_billed);
}

/** Three pieces; the second is asked for when the first has been answered, the third when the first has been spoken. */
function threePieces() {
  const rig = stage();
  for (const text of ["abc def. ", "ghi jkl. ", "mno pqr."]) {
    rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush" });
  }
  rig.send({ type: "end" });
  return rig;
}

describe("characters_billed", () => {
  it("has what was answered and is cut off before it was spoken", () => {
    const rig = threePieces();
    rig.answer(0);
    rig.answer(1);
    rig.clock.advance(3 * CHAR_MS);
    expect(rig.requests).toHaveLength(2);
    rig.send({ type: "interrupt" });
    expect(billed(rig)).toEqual([20]);
  });

  it("has the request that is aborted while it is answered", () => {
    const rig = threePieces();
    rig.answer(0, { chars: 5, isOpen: true });
    rig.clock.advance(2 * CHAR_MS);
    rig.send({ type: "interrupt" });
    expect(rig.requests[0]?.isAborted).toBe(true);
    expect(billed(rig)).toEqual([10]);
  });

  it("is null where the upstream has said nothing", () => {
    const rig = threePieces();
    rig.send({ type: "interrupt" });
    rig.hearOut();
    expect(billed(rig)).toEqual([null]);
  });

  it("goes on where it is resumed, and counts no request twice", () => {
    const rig = threePieces();
    rig.answer(0);
    rig.answer(1);
    rig.clock.advance(5 * CHAR_MS);
    rig.send({ type: "interrupt" });
    const before = rig.requests.length;
    rig.send({ type: "resume" });
    rig.hearOut();
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
    expect(billed(rig)).toEqual([20, 20 + 10 * (rig.requests.length - before)]);
  });

  it("has both where what waits is put back and asked for again", () => {
    const rig = stage();
    rig.speak("abc def ghi.", "a");
    rig.answer(0);
    rig.speak("jkl mno.", "b");
    rig.clock.advance(2 * CHAR_MS);
    rig.answer(1, { chars: 0, isOpen: true });
    rig.send({ type: "interrupt", utterance_id: "a" });
    // What goes on is asked for before what has not begun.
    rig.send({ type: "resume" });
    rig.hearOut();
    const ofB = rig.asked().filter((text) => text === "jkl mno.").length;
    expect(ofB).toBe(2);
    expect(rig.listener.eventsOf("utterance.done").find((event) => event.utterance_id === "b")).toMatchObject(
      {
        outcome: "done",
        characters_billed: 20,
      },
    );
  });

  it("has a try that the upstream began to answer and broke off", () => {
    const rig = stage();
    rig.speak("abc", "u");
    rig.answer(0, { chars: 0, isOpen: true });
    rig.requests[0]?.handlers.error(new GatewayError("upstream_truncated", "Broke off"));
    rig.clock.advance(200);
    rig.answer(1);
    rig.hearOut();
    expect(billed(rig)).toEqual([20]);
  });
});
