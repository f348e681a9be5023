/** `resume` of an utterance that had failed already when it was cut, while what had come of it was still heard. */
import { describe, expect, it } from "vitest";
import { BROKE, breakOff } from "../broken-speech.ts";
import { heardOf, lettersOf, read, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "alpha bravo charlie delta echo";
/** A listener that is sent all that comes at once: what came of a failed request is pushed long before it is heard. */
const FAR = "format=ulaw_8000&lead_ms=1500";

type Stage = ReturnType<typeof stage>;

const heardLetters = ({ listener }: Stage): string[] => heardOf(listener).map(({ audio }) => read(audio));

function cutAndGoOn(rig: Stage, cutMs: number) {
  rig.clock.advance(cutMs);
  rig.send({ type: "interrupt" });
  const [receipt] = rig.listener.eventsOf("interrupted");
  rig.send({ type: "resume" });
  rig.hearOut();
  return receipt;
}

describe("resume of an utterance whose failure was not emitted yet", () => {
  it("says what is kept, then asks for the text that did not come", () => {
    const rig = stage(FAR);
    rig.speak(TEXT, "u");
    // "alpha bravo charlie de", and nobody may ask for the rest at once.
    rig.answer(0, { chars: 22 });
    breakOff(rig, 0, "upstream_invalid");
    const receipt = cutAndGoOn(rig, 420);
    expect(receipt).toMatchObject({ heard: { text: "alpha " }, resumable: true });
    expect(rig.asked()).toEqual([TEXT, " delta echo"]);
    expect(heardLetters(rig)[1]).toBe(lettersOf(TEXT.slice(6)));
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("asks for a segment without audio, and for the text behind it", () => {
    const rig = stage(FAR);
    const pieces = ["alpha bravo charlie. ", "delta echo. ", "foxtrot golf."];
    for (const text of pieces) {
      rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
      rig.send({ type: "flush", utterance_id: "u" });
    }
    rig.send({ type: "end", utterance_id: "u" });
    rig.answer(0);
    rig.clock.advance(20);
    expect(rig.asked()).toEqual(pieces.slice(0, 2));
    rig.answer(1, { chars: 0, isOpen: true });
    breakOff(rig, 1, "upstream_forbidden");
    cutAndGoOn(rig, 400);
    expect(heardLetters(rig)[1]).toBe(lettersOf(pieces.join("").slice(6)));
    expect(rig.asked().slice(2)).toEqual(pieces.slice(1));
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/done"]);
  });

  it("fails again where the request does", () => {
    const rig = stage(FAR);
    rig.speak(TEXT, "u");
    rig.answer(0, { chars: 22 });
    breakOff(rig, 0, "upstream_invalid");
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    breakOff(rig, 1, "upstream_invalid");
    rig.clock.advance(5000);
    expect(rig.outcomes()).toEqual(["u/interrupted", "u/failed"]);
  });

  it("asks for all text from the cut on where nothing was timed", () => {
    const rig = stage(`${FAR}&events=none`);
    rig.speak(TEXT, "u");
    const [request] = rig.requests;
    request?.head();
    request?.chunk(spell(TEXT.slice(0, 22)));
    request?.handlers.error(BROKE());
    // Another one is pushed behind it: that one's audio is no part of this one's length.
    rig.speak("golf", "g");
    rig.clock.advance(20);
    rig.answer(1);
    const receipt = cutAndGoOn(rig, 600);
    expect(receipt).toMatchObject({ utterance_id: "u", resumable: true });
    const unheard = receipt?.unheard_text ?? "";
    expect(unheard).not.toBe("");
    expect(rig.asked()).toContain(unheard);
    expect(heardLetters(rig).at(-1)?.endsWith(lettersOf(unheard))).toBe(true);
    expect(rig.outcomes().at(-1)).toBe("u/done");
  });
});
