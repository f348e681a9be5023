/** Short responses, of which there is little to hold the times against. */
import { expect, it } from "vitest";
import { OggOpusEncoder } from "../../../../src/audio/containers/ogg-encoder.ts";
import { evenAlignment } from "../../../helpers/session-rig.ts";
import { CHAR_MS, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "abcdefghij";

// What is heard behind the times of one chunk says whether that is silence.
it.each([
  ["sound", TEXT, 0.7, "estimated"],
  ["silence", `${TEXT}    `, 1, "exact"],
])("with %s behind them", (_, said, factor, label) => {
  const rig = stage("format=ulaw_8000&events=words");
  rig.send({ type: "speak", text: TEXT, voice_id: VOICE, utterance_id: "u" });
  const [request] = rig.requests;
  request?.head();
  request?.chunk(spell(said), { alignment: evenAlignment(TEXT, CHAR_MS * factor) });
  request?.handlers.end();
  rig.clock.advance(3000);
  expect(rig.listener.eventsOf("words").map((event) => event.timing)).toEqual([label]);
});

it("times of Opus, whose pages hold audio back, are exact behind the pre-skip", () => {
  const rig = stage("format=opus_48000&events=words");
  rig.send({ type: "speak", text: "Hello there.", voice_id: VOICE, utterance_id: "u" });
  const [request] = rig.requests;
  request?.head();
  const encoder = new OggOpusEncoder({ bitrateKbps: 64 });
  // "Hello " takes 309 ms, "there." 491 ms.
  const hello = evenAlignment("Hello ", 309 / 6);
  request?.chunk(encoder.push(new Int16Array(309 * 48)), { alignment: hello });
  const there = evenAlignment("there.", 491 / 6, 309);
  request?.chunk(encoder.push(new Int16Array(491 * 48)), { alignment: there });
  request?.chunk(encoder.flush());
  encoder.close();
  request?.handlers.end();
  rig.clock.advance(3000);
  const emitted = rig.listener.eventsOf("words");
  expect(emitted.map((event) => event.timing)).not.toContain("estimated");
  const [first, second] = emitted.flatMap((event) => event.words);
  expect([first?.start_ms, second?.start_ms]).toEqual([expect.closeTo(6.5, 1), expect.closeTo(315.5, 1)]);
  expect(second?.end_ms).toBeCloseTo(6.5 + 309 + (491 / 6) * 5, 0);
});
