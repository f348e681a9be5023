/** A recorded session runs again exactly as it ran. */
import { describe, expect, it } from "vitest";
import { countingUlaw, evenAlignment } from "../../helpers/session-rig.ts";
import { createRecordedRig } from "./recording-rig.ts";

const SAME = { difference: null };

describe("replay of a session", () => {
  it("of one utterance: all that the listener was sent", async () => {
    const rig = createRecordedRig();
    const { listener, send } = rig.join("format=ulaw_8000");
    send({ type: "speak", text: "Hello there." });
    await Promise.resolve();
    rig.requests[0]?.head();
    rig.requests[0]?.chunk(countingUlaw(600), { alignment: evenAlignment("Hello there.", 50) });
    rig.requests[0]?.handlers.end();
    rig.clock.advance(2000);
    expect(listener.frames.length).toBeGreaterThan(20);
    const replayed = await rig.replayed();
    expect(replayed).toMatchObject(SAME);
    expect(replayed.messages).toBeGreaterThan(5);
  });
});
