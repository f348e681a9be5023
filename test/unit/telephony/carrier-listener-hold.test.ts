/** What a carrier holds up, to the wire, as Asterisk does it: how it goes on, and what ends that. */
import { describe, expect, it } from "vitest";
import type { SendResult } from "../../../src/delivery/listener.ts";
import { asterisk } from "../../../src/protocol/carrier/asterisk.ts";
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import type { Event } from "../../../src/protocol/events.ts";
import { CallStats } from "../../../src/telephony/call-stats.ts";
import { CarrierListener } from "../../../src/telephony/carrier-listener.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { logged } from "../../helpers/logged.ts";
import { MemoryLine } from "./call-rig.ts";

/** Bytes of a millisecond of µ-law. */
const BYTES_PER_MS = 8;
/** How often a piece goes out, ms. */
const STEP_MS = 100;

const INTERRUPTED: Event = {
  type: "interrupted",
  seq: 1,
  at_ms: 0,
  utterance_id: "u",
  heard: { text: "", end: 0, ms: 0, source: "estimate", bound_ms: 0 },
  unheard_text: "",
  resumable: false,
  next_ms: 0,
};

class FullLine extends MemoryLine {
  override send(messages: readonly Wire[]): SendResult {
    super.send(messages);
    return "dropped";
  }
}

/** `frameMs` and `markMs` as the listener gets them; a frame is `f` and its number. */
function createStage({ frameMs = 20, markMs = 0, line = new MemoryLine() } = {}) {
  const clock = new FakeClock();
  const codec = asterisk.open({ query: new Map(), headers: new Map() });
  codec.read(
    `MEDIA_START connection_id:c channel:C channel_id:1 format:ulaw optimal_frame_size:${frameMs * BYTES_PER_MS} ptime:${frameMs}`,
  );
  const ends: [number, string][] = [];
  let rooms = 0;
  const listener = new CarrierListener({
    codec,
    line,
    clock,
    frameMs,
    markMs,
    counts: new CallStats().of("asterisk"),
    isSentOut: () => true,
    onEnd: (code, reason) => ends.push([code, reason]),
    onRoom: () => {
      rooms += 1;
    },
  });
  const wordOf = (wire: Wire): string => {
    if (typeof wire === "string") return wire;
    const frameBytes = frameMs * BYTES_PER_MS;
    return Array.from({ length: wire.length / frameBytes }, (_, at) => `f${wire[at * frameBytes]}`).join("+");
  };
  let frames = 0;
  return {
    clock,
    line,
    listener,
    ends,
    get rooms() {
      return rooms;
    },
    /** All that was sent, in words. */
    get sent(): string[] {
      return line.sent.map(wordOf);
    },
    /** The next frames, in one batch. */
    speak(count: number): SendResult {
      const batch = Array.from({ length: count }, () => {
        frames += 1;
        return new Uint8Array(frameMs * BYTES_PER_MS).fill(frames);
      });
      return listener.deliver(batch);
    },
    cut(): void {
      listener.deliver([logged(INTERRUPTED)]);
    },
  };
}

const framesTo = (last: number, first = 1): string[] =>
  Array.from({ length: last - first + 1 }, (_, at) => `f${first + at}`);

describe("what a carrier held up", () => {
  it("goes out a frame a message, ten frames in 100 ms, to the last and no further", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(25);
    stage.listener.goOn();
    expect(stage.sent).toEqual(framesTo(10));
    stage.clock.advance(STEP_MS - 1);
    expect(stage.sent).toEqual(framesTo(10));
    stage.clock.advance(1);
    expect(stage.sent).toEqual(framesTo(20));
    stage.clock.advance(STEP_MS);
    expect(stage.sent).toEqual(framesTo(25));
    stage.clock.advance(10 * STEP_MS);
    expect(stage.sent).toEqual(framesTo(25));
    expect(stage.listener.bufferedBytes()).toBe(0);
  });

  it.each([
    [10, 20],
    [60, 4],
    [100, 2],
  ])("leaves at twice real time with frames of %i ms too", (frameMs, piece) => {
    const stage = createStage({ frameMs });
    stage.listener.hold();
    stage.speak(50);
    stage.listener.goOn();
    expect(stage.sent).toHaveLength(piece);
    stage.clock.advance(STEP_MS);
    expect(stage.sent).toHaveLength(2 * piece);
  });

  it("is followed by what came while it was held; later audio is sent at once", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(12);
    stage.listener.goOn();
    expect(stage.speak(3)).toBe("buffered");
    expect(stage.sent).toEqual(framesTo(10));
    stage.clock.advance(STEP_MS);
    expect(stage.sent).toEqual(framesTo(15));
    expect(stage.speak(2)).toBe("sent");
    expect(stage.sent).toEqual([...framesTo(15), "f16+f17"]);
  });

  it("keeps the marks where they stand", () => {
    const stage = createStage({ markMs: 200 });
    stage.listener.hold();
    stage.speak(12);
    stage.listener.goOn();
    stage.speak(1);
    stage.clock.advance(2 * STEP_MS);
    const words = [
      ["f1", "MARK_MEDIA m1"],
      [...framesTo(11, 2), "MARK_MEDIA m2"],
      ["f12", "MARK_MEDIA m3"],
      ["f13", "MARK_MEDIA m4"],
    ];
    expect(stage.sent).toEqual(words.flat());
  });

  it("waits again from the next hold on, and goes on where it was", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(30);
    stage.listener.goOn();
    stage.listener.hold();
    stage.clock.advance(10 * STEP_MS);
    expect(stage.sent).toEqual(framesTo(10));
    stage.listener.goOn();
    expect(stage.sent).toEqual(framesTo(20));
    stage.clock.advance(STEP_MS);
    expect(stage.sent).toEqual(framesTo(30));
  });

  it("goes no faster where it is resumed twice", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(40);
    stage.listener.goOn();
    stage.listener.goOn();
    stage.clock.advance(STEP_MS);
    expect(stage.sent).toEqual(framesTo(20));
  });

  it("counts as held back until it has left, and says each time that there is more room", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(25);
    expect(stage.listener.bufferedBytes()).toBe(25 * 160);
    const left: number[] = [];
    stage.listener.goOn();
    for (const _ of [1, 2, 3]) {
      left.push(stage.listener.bufferedBytes() / 160);
      expect(stage.rooms).toBe(left.length);
      stage.clock.advance(STEP_MS);
    }
    expect(left).toEqual([15, 5, 0]);
    expect(stage.rooms).toBe(3);
  });

  it("is gone with a cut, and what comes next goes at once", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(30);
    stage.listener.goOn();
    stage.cut();
    expect(stage.clock.pending).toBe(0);
    expect(stage.listener.bufferedBytes()).toBe(0);
    stage.speak(1);
    stage.clock.advance(10 * STEP_MS);
    expect(stage.sent).toEqual([...framesTo(10), "FLUSH_MEDIA", "f31"]);
  });

  it("is paced again after a cut and another hold", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(30);
    stage.listener.goOn();
    stage.cut();
    stage.listener.hold();
    stage.speak(30);
    stage.clock.advance(10 * STEP_MS);
    expect(stage.sent).toEqual([...framesTo(10), "FLUSH_MEDIA"]);
    stage.listener.goOn();
    expect(stage.sent).toEqual([...framesTo(10), "FLUSH_MEDIA", ...framesTo(40, 31)]);
  });

  it("is gone with the call, and no timer is left", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(30);
    stage.listener.goOn();
    expect(stage.clock.pending).toBe(1);
    stage.listener.close();
    expect(stage.clock.pending).toBe(0);
    stage.clock.advance(10 * STEP_MS);
    stage.listener.goOn();
    expect(stage.sent).toEqual(framesTo(10));
  });

  it("waits for a connection that is behind", () => {
    const stage = createStage();
    stage.listener.hold();
    stage.speak(20);
    stage.listener.goOn();
    stage.line.buffered = 1;
    stage.clock.advance(5 * STEP_MS);
    expect(stage.sent).toEqual(framesTo(10));
    expect(stage.listener.bufferedBytes()).toBe(10 * 160 + 1);
    stage.line.buffered = 0;
    stage.clock.advance(STEP_MS);
    expect(stage.sent).toEqual(framesTo(20));
  });

  it("ends a call whose connection does not take it", () => {
    const stage = createStage({ line: new FullLine() });
    stage.listener.hold();
    stage.speak(30);
    stage.listener.goOn();
    expect(stage.ends).toEqual([[4408, "slow_consumer"]]);
    expect(stage.clock.pending).toBe(0);
  });
});
