/** A dialogue whose response breaks off where one of its inputs ends. */
import { expect, it } from "vitest";
import { breakOff } from "../broken-speech.ts";
import { stage } from "../spelling.ts";

it("what ends an input is emitted with it, before the next one begins", () => {
  const rig = stage("format=ulaw_8000&events=characters,words");
  const inputs = [
    { text: "abc def. ", voice_id: "v1" },
    { text: "ghi", voice_id: "v2" },
  ];
  rig.send({ type: "dialogue", inputs, utterance_id: "u" });
  rig.answer(0, { chars: 9, chunk: 9, isOpen: true });
  breakOff(rig, 0);
  expect(rig.requests[1]?.request).toMatchObject({ inputs: [{ text: "ghi", voiceId: "v2" }] });
  rig.hearOut();
  const emitted = rig.listener.eventsOf("characters");
  expect(emitted.flatMap((event) => event.characters).join("")).toBe("abc def. ghi");
  const ends = emitted.flatMap((event) => event.end_ms);
  for (const [index, startMs] of emitted.flatMap((event) => event.start_ms).entries())
    expect(startMs).toBeGreaterThanOrEqual(ends[index - 1] ?? 0);
  expect(rig.listener.eventsOf("warning")).toMatchObject([{ code: "speech_recovered", start: 9 }]);
});
