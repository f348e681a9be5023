/** Opus encoders are few: a session holds one while it speaks to somebody, and its faults are emitted to those who hear them. */
import { describe, expect, it } from "vitest";
import { SlowEncoder } from "../../helpers/slow-encoder.ts";
import { heardOf, read, stage } from "./spelling.ts";

const OPUS = "format=opus_48000&lead_ms=100";
/** What was said before the listener left is not said again, what it lost is a letter or two at most. */
const LETTERS = "alphabravocharliedelta";

function stageOpus(encoder: SlowEncoder, query = OPUS) {
  const rig = stage("role=speaker&format=alaw_8000", { graceMs: 5000, keepMs: 2000 }, encoder.pool);
  const opus = rig.join(`role=listener&${query}`);
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 10) {
      rig.answerAll();
      rig.clock.advance(10);
      encoder.turn();
      await Promise.resolve();
    }
  };
  return { rig, opus, pass };
}

describe("an Opus encoder", () => {
  it("is held while there is speech, and given back at its end and when it is interrupted", async () => {
    const encoder = new SlowEncoder(2);
    const { rig, pass } = stageOpus(encoder);
    rig.speak("alpha bravo", "a");
    await pass(100);
    expect(encoder.taken).toBe(1);
    await pass(1500);
    expect(encoder.taken).toBe(0);
    for (const id of ["b", "c"]) {
      rig.speak("alpha bravo charlie delta", id);
      await pass(400);
      expect(encoder.taken).toBe(1);
      rig.send({ type: "interrupt" });
      await pass(50);
      expect(encoder.taken).toBe(0);
    }
  });

  it("is given back while speech waits for a listener that was lost, and the speech goes on when it is back", async () => {
    const encoder = new SlowEncoder(2);
    const { rig, opus, pass } = stageOpus(encoder);
    const speaker = rig.join("role=speaker&format=none&events=none");
    speaker.send({ type: "speak", text: "alpha bravo charlie delta", voice_id: "v" });
    await pass(400);
    // With its other codec it has made the upstream send samples.
    rig.session.leave(rig.participant);
    expect(encoder.taken).toBe(1);
    const [hello] = opus.listener.eventsOf("hello");
    const seq = Math.max(
      ...opus.listener.sent.map(({ event }) => (event !== undefined && "seq" in event ? event.seq : 0)),
    );
    const atMs = (hello?.audio?.start_ms ?? 0) + opus.listener.frames.length * 20;
    opus.session.leave(opus.participant);
    await pass(100);
    expect(encoder.taken).toBe(0);
    await pass(1000);
    const back = rig.join(`role=listener&${OPUS}&resume=${hello?.resume_token}&seq=${seq}&at_ms=${atMs}`);
    await pass(3000);
    const heard = [opus.listener, back.listener].flatMap((listener) => heardOf(listener, "pcm_24000"));
    expect(read(Buffer.concat(heard.map(({ audio }) => audio)), "pcm_24000")).toBe(LETTERS);
    expect(encoder.taken).toBe(0);
  });

  it("where none is free, only those who would hear its frames get the error, once", async () => {
    const encoder = new SlowEncoder(2, 0);
    const { rig, opus, pass } = stageOpus(encoder);
    const pcm = rig.join("role=listener&format=pcm_16000");
    rig.speak("alpha bravo", "a");
    await pass(1500);
    expect(opus.listener.eventsOf("error")).toMatchObject([{ code: "encoder_failed" }]);
    for (const { listener } of [rig, pcm]) {
      expect(listener.eventsOf("error")).toEqual([]);
      expect(listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
    }
    expect(read(Buffer.concat(pcm.listener.frames), "pcm_16000").length).toBeGreaterThanOrEqual(9);
  });
});
