/** What a client gets of an utterance whose request failed for good, while what had come of it is heard. */
import { expect, it } from "vitest";
import { createRig, evenAlignment } from "../../../helpers/session-rig.ts";
import { breakOff } from "../broken-speech.ts";
import { CHAR_MS, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "alpha bravo charlie delta echo";

it("counts the text that was heard where nothing was timed, by the share of its audio", () => {
  const rig = stage("format=ulaw_8000&events=none");
  rig.speak(TEXT, "u");
  const [request] = rig.requests;
  request?.head();
  request?.chunk(spell(TEXT.slice(0, 22)));
  breakOff(rig, 0, "upstream_invalid");
  rig.clock.advance(5000);
  const [done] = rig.listener.eventsOf("utterance.done");
  expect(done).toMatchObject({ outcome: "failed", end_ms: 1100 });
  // Whole words: at the usual pace 1.1 s are some 15 letters.
  expect(["alpha ", "alpha bravo "]).toContain(TEXT.slice(0, done?.characters_spoken));
});

it("counts whole words where they were timed", () => {
  const rig = stage();
  rig.speak(TEXT, "u");
  rig.answer(0, { chars: 22 });
  breakOff(rig, 0, "upstream_invalid");
  rig.clock.advance(5000);
  const [done] = rig.listener.eventsOf("utterance.done");
  expect(done).toMatchObject({ outcome: "failed", characters_spoken: "alpha bravo charlie ".length });
});

it("refuses more of its text as that of one that is over, not as text behind its end", () => {
  const rig = stage("format=ulaw_8000&lead_ms=1500");
  const send = (text: string) => () => rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
  const isOver = expect.objectContaining({ code: "utterance_over" });
  send("alpha bravo. ")();
  rig.send({ type: "flush", utterance_id: "u" });
  rig.answer(0, { chars: 8 });
  breakOff(rig, 0, "upstream_invalid");
  rig.clock.advance(20);
  expect(send("charlie")).toThrow(isOver);
  rig.clock.advance(5000);
  expect(rig.outcomes()).toEqual(["u/failed"]);
  expect(send("delta")).toThrow(isOver);
});

it("ends behind the last word that was emitted, though its audio broke off inside it", () => {
  const rig = stage("format=ulaw_8000&events=words,characters&lead_ms=400");
  rig.speak("alpha bravo charlie", "u");
  const [request] = rig.requests;
  request?.head();
  request?.chunk(spell("alpha "), { alignment: evenAlignment("alpha ", CHAR_MS) });
  // 60 ms of its last letter are still with an encoder, and never come.
  const brokenOff = spell("bravo").subarray(0, 8 * (5 * CHAR_MS - 60));
  request?.chunk(brokenOff, { alignment: evenAlignment("bravo", CHAR_MS, 6 * CHAR_MS) });
  breakOff(rig, 0, "upstream_invalid");
  rig.clock.advance(5000);
  const ends = rig.listener.eventsOf("characters").flatMap((event) => event.end_ms);
  const [done] = rig.listener.eventsOf("utterance.done");
  expect(done?.outcome).toBe("failed");
  expect(Math.max(...ends)).toBe(done?.end_ms);
});

it("fails by name where its audio can't be cut into frames, and the queue goes on", () => {
  const rig = createRig({ opusBitrateKbps: "nonsense" as "64" });
  const { listener, send } = rig.join("format=opus_48000");
  for (const id of ["u", "v"]) send({ type: "speak", text: "alpha", voice_id: VOICE, utterance_id: id });
  for (const index of [0, 1]) {
    rig.requests[index]?.head();
    rig.requests[index]?.chunk(new Uint8Array(100));
    rig.clock.advance(1000);
  }
  expect(listener.eventsOf("utterance.done")).toMatchObject([
    { utterance_id: "u", outcome: "failed", error: { code: "internal" } },
    { utterance_id: "v", outcome: "failed", error: { code: "internal" } },
  ]);
});
