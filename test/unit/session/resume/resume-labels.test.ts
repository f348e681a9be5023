/** How the times of what `resume` says from kept audio are labelled: as they were before the cut, and no better. */
import { describe, expect, it } from "vitest";
import { evenAlignment } from "../../../helpers/session-rig.ts";
import { CHAR_MS, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "alpha bravo charlie delta echo";
const QUERY = "format=ulaw_8000&events=characters,words,normalized";

type Stage = ReturnType<typeof stage>;

/** Timings of the events emitted behind the latest `utterance.resumed`, and that one's own. */
function labelsOf({ listener }: Stage): { resumed: string | undefined; emitted: string[] } {
  const from = listener.events.findLastIndex((event) => event.type === "utterance.resumed");
  const emitted = listener.events
    .slice(from)
    .flatMap((event) =>
      event.type === "words" || event.type === "characters" || event.type === "normalized"
        ? [event.timing]
        : [],
    );
  return { resumed: listener.eventsOf("utterance.resumed").at(-1)?.timing, emitted: [...new Set(emitted)] };
}

function cutAndGoOn(rig: Stage, cutMs: number): void {
  rig.clock.advance(cutMs);
  rig.send({ type: "interrupt" });
  rig.send({ type: "resume" });
}

/** Text that comes, and is asked for, in two pieces: the first one is answered without times, the second with its own. */
function inPieces(): Stage {
  const rig = stage(QUERY);
  for (const text of ["alpha bravo. ", "charlie delta echo."]) {
    rig.send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
    rig.send({ type: "flush", utterance_id: "u" });
  }
  rig.send({ type: "end", utterance_id: "u" });
  const [first] = rig.requests;
  first?.head();
  first?.chunk(spell("alpha bravo. "));
  first?.handlers.end();
  rig.clock.advance(20);
  rig.answer(1);
  return rig;
}

describe("labels of what goes on from kept audio", () => {
  it("are scaled where the upstream's times were of another pace", () => {
    const rig = stage(QUERY);
    rig.speak(TEXT, "u");
    const [request] = rig.requests;
    request?.head();
    for (let at = 0; at < TEXT.length; at += 10) {
      const piece = TEXT.slice(at, at + 10);
      request?.chunk(spell(piece), { alignment: evenAlignment(piece, CHAR_MS * 0.8, at * CHAR_MS * 0.8) });
    }
    request?.handlers.end();
    cutAndGoOn(rig, 420);
    rig.clock.advance(5000);
    expect(labelsOf(rig)).toEqual({ resumed: "scaled", emitted: ["scaled"] });
  });

  it("are exact where only what was heard before was an estimate", () => {
    const rig = inPieces();
    // In "delta" of the second piece.
    cutAndGoOn(rig, 1080);
    rig.clock.advance(5000);
    expect(labelsOf(rig)).toEqual({ resumed: "exact", emitted: ["exact"] });
    expect(rig.listener.eventsOf("utterance.done").at(-1)).toMatchObject({
      outcome: "done",
      timing: "estimated",
    });
  });
});
