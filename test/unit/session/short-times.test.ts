/** A response of one chunk whose times end before its audio: what is heard behind them says whether that is silence. */
import { expect, it } from "vitest";
import { evenAlignment } from "../../helpers/session-rig.ts";
import { CHAR_MS, spell, stage, VOICE } from "./spelling.ts";

const TEXT = "abcdefghij";

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
  expect(rig.sink.eventsOf("words").map((event) => event.timing)).toEqual([label]);
});
