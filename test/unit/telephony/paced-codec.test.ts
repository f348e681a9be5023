/** The codec of calls that we pace: what its player is made of, and what it reports. */
import { describe, expect, it } from "vitest";
import { silenceBytes } from "../../../src/audio/analysis/silence.ts";
import { Pacer } from "../../../src/delivery/pacer.ts";
import type { CallStart } from "../../../src/protocol/carrier/carrier.ts";
import { NEWS, PacedCodec } from "../../../src/telephony/paced-codec.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

const START: CallStart = {
  callId: "c",
  streamId: "c",
  parameters: {},
  callerFormat: "alaw_8000",
  format: "alaw_8000",
  frameMs: 20,
};

function begun() {
  const clock = new FakeClock();
  const pacer = new Pacer(clock);
  const done: string[] = [];
  const sent: Uint8Array[] = [];
  const codec = new PacedCodec(() => [{ kind: "dtmf", digit: "1" }]);
  codec.begin(START, {
    pacer,
    clock,
    silence: "alaw",
    send: ({ bytes }) => {
      sent.push(bytes);
      done.push("frame");
    },
    onSkipped: () => undefined,
    onNews: () => done.push("news"),
  });
  return { clock, pacer, codec, done, sent };
}

describe("PacedCodec", () => {
  it("sends a frame of the call's own silence each 20 ms", () => {
    const { clock, sent } = begun();
    clock.advance(60);
    expect(sent).toEqual([1, 2, 3].map(() => silenceBytes("alaw", 160)));
  });

  it("reports the call's beginning and marks that were played, before what the peer says", () => {
    const { clock, codec, done } = begun();
    expect(codec.read(Uint8Array.of(1))).toEqual([
      { kind: "started", call: START },
      { kind: "dtmf", digit: "1" },
    ]);
    codec.audio([Uint8Array.of(1)]);
    codec.mark("m1");
    clock.advance(40);
    expect(done).toEqual(["frame", "news", "frame"]);
    expect(codec.read(NEWS)).toEqual([{ kind: "played", name: "m1" }]);
    expect(codec.read(NEWS)).toEqual([]);
  });

  it("its frame has left before a session that is due with it is woken", () => {
    const { clock, pacer, done } = begun();
    const session = pacer.register({ tick: () => done.push("made"), send: () => done.push("sent") });
    session.wakeAt(clock.nowMs() + 20);
    clock.advance(20);
    expect(done).toEqual(["frame", "made", "sent"]);
  });

  it("sends nothing more when it has hung up", () => {
    const { clock, codec, sent } = begun();
    clock.advance(20);
    codec.hangUp();
    clock.advance(100);
    expect(sent).toHaveLength(1);
  });
});
