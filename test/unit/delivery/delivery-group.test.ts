/** Delivery groups without a session: frames and events in order, in step and behind. */
import { describe, expect, it } from "vitest";
import type { OpusPool } from "../../../src/audio/codecs/opus-pool.ts";
import { DeliveryGroup } from "../../../src/delivery/delivery-group.ts";
import { EventLog } from "../../../src/delivery/event-log.ts";
import { ListenerCursor } from "../../../src/delivery/listener-cursor.ts";
import { Rendition } from "../../../src/delivery/rendition.ts";
import type { Event } from "../../../src/protocol/events.ts";
import type { EventKind, Policy } from "../../../src/protocol/vocabulary.ts";
import { TICKS_PER_MS } from "../../../src/timing/ticks.ts";
import { placed } from "../../helpers/logged.ts";
import { MemoryListener } from "../../helpers/memory-listener.ts";

function createGroup(options: { events?: EventKind[]; maxRingBytes?: number } = {}) {
  const rendition = new Rendition({
    format: "ulaw_8000",
    frameMs: 20,
    framing: "raw",
    band: "full",
    startTicks: 0,
    maxRingBytes: options.maxRingBytes ?? 1_000_000,
    opusPool: {} as OpusPool,
    onEncodedFrame: () => undefined,
    onError: (error) => {
      throw error;
    },
  });
  const log = new EventLog(100);
  const group = new DeliveryGroup({
    sent: { bytes: 0, ms: 0 },
    rendition,
    log,
    pace: "realtime",
    leadMs: 0,
    events: options.events ?? ["words"],
    frame: 0,
    event: 0,
  });
  let seq = 0;
  const emit = (atMs: number, kind: EventKind | null = "words"): void => {
    seq += 1;
    const event: Event = { type: "words", seq, at_ms: atMs, utterance_id: "u", words: [], timing: "exact" };
    log.append(event, placed({ positionTicks: atMs * TICKS_PER_MS, kind }));
  };
  const listen = (policy: Policy = "live") => {
    const listener = new MemoryListener();
    const cursor = new ListenerCursor({ listener, policy, offsets: "utf16", maxOutboxBytes: 65_536 });
    group.add(cursor);
    return { listener, cursor };
  };
  const pushFrames = (count: number): void =>
    rendition.pushPassThrough(new Uint8Array(count * 160).fill(count));
  return {
    rendition,
    log,
    group,
    emit,
    listen,
    pushFrames,
    release: (ms: number): number => {
      group.collect(ms * TICKS_PER_MS);
      return group.send();
    },
  };
}

/** What came, frames as "f", events as their time. */
const shape = (listener: MemoryListener): (string | number)[] =>
  listener.sent.map((item) => (item.frame === undefined ? (item.event?.at_ms ?? -1) : "f"));

describe("DeliveryGroup.collect() and send()", () => {
  it("puts an event before the frame that contains it and sends a batch in one cork", () => {
    const { group: _group, emit, listen, pushFrames, release } = createGroup();
    const { listener } = listen();
    pushFrames(4);
    emit(0);
    emit(25);
    emit(60);
    release(1000);
    expect(shape(listener)).toEqual([0, "f", 25, "f", "f", 60, "f"]);
    expect(new Set(listener.sent.map((item) => item.cork)).size).toBe(1);
  });

  it("holds frames and events back that start beyond the limit", () => {
    const { emit, listen, pushFrames, release } = createGroup();
    const { listener } = listen();
    pushFrames(5);
    emit(70);
    expect(release(39)).toBe(2);
    expect(shape(listener)).toEqual(["f", "f"]);
    expect(release(60)).toBe(2);
    expect(shape(listener)).toEqual(["f", "f", "f", 70, "f"]);
  });

  it("leaves out kinds that were not asked for and what was withdrawn", () => {
    const { log, emit, listen, pushFrames, release } = createGroup({ events: ["marks"] });
    const { listener } = listen();
    emit(0, "words");
    emit(1, "marks");
    emit(2, null);
    emit(3, null);
    log.withdraw((entry) => entry.seq === 4);
    pushFrames(1);
    release(100);
    expect(shape(listener)).toEqual([1, 2, "f"]);
  });

  it("gives every listener in step the same messages", () => {
    const { emit, listen, pushFrames, release } = createGroup();
    const listeners = [listen(), listen(), listen()];
    emit(0);
    pushFrames(3);
    expect(release(100)).toBe(9);
    for (const { listener } of listeners) expect(listener.sent).toEqual(listeners[0]?.listener.sent);
  });
});

describe("DeliveryGroup.catchUp()", () => {
  it("a lossless listener gets exactly what it missed, in the same order", () => {
    const { group, emit, listen, pushFrames, release } = createGroup();
    const healthy = listen();
    const slow = listen("lossless");
    slow.listener.isFull = true;
    for (let index = 0; index < 40; index += 1) {
      emit(index * 100);
      pushFrames(5);
      release(index * 100 + 80);
    }
    expect(slow.listener.frames.length).toBe(5);
    expect(group.oldestNeededFrame()).toBe(5);
    slow.listener.isFull = false;
    group.catchUp(slow.cursor, () => expect.unreachable());
    expect(slow.cursor.behind).toBeNull();
    expect(shape(slow.listener)).toEqual(shape(healthy.listener));
    expect(Buffer.concat(slow.listener.frames)).toEqual(Buffer.concat(healthy.listener.frames));
  });

  it("a live listener gets the gap, every event, and is in step again", () => {
    const { group, emit, listen, pushFrames, release } = createGroup();
    const slow = listen("live");
    slow.listener.isFull = true;
    for (let index = 0; index < 10; index += 1) {
      emit(index * 20);
      pushFrames(1);
      release(index * 20);
    }
    slow.listener.isFull = false;
    const gaps: object[] = [];
    group.catchUp(slow.cursor, (_queue, gap) => gaps.push(gap));
    expect(gaps).toEqual([{ frames: 9, ms: 180 }]);
    expect(shape(slow.listener)).toEqual([0, "f", 20, 40, 60, 80, 100, 120, 140, 160, 180]);
    pushFrames(1);
    release(1000);
    expect(slow.listener.frames).toHaveLength(2);
  });

  it("a live listener gets the events that it missed before it gets the gap", () => {
    const { group, emit, listen, pushFrames, release } = createGroup();
    const slow = listen("live");
    slow.listener.isFull = true;
    for (let index = 0; index < 10; index += 1) {
      emit(index * 20);
      pushFrames(1);
      release(index * 20);
    }
    slow.listener.isFull = false;
    const eventsBefore: number[] = [];
    group.catchUp(slow.cursor, () => eventsBefore.push(slow.listener.events.length));
    expect(eventsBefore).toEqual([10]);
  });

  it("stops again when the socket fills up again, and loses nothing by it", () => {
    const { group, listen, pushFrames, release } = createGroup();
    const slow = listen("lossless");
    slow.listener.isFull = true;
    for (let index = 0; index < 500; index += 1) {
      pushFrames(1);
      release(index * 20);
    }
    let sends = 0;
    slow.listener.isFull = false;
    slow.listener.beforeSend = () => {
      sends += 1;
      if (sends === 100) slow.listener.isFull = true;
    };
    group.catchUp(slow.cursor, () => expect.unreachable());
    expect(slow.cursor.behind).not.toBeNull();
    slow.listener.isFull = false;
    group.catchUp(slow.cursor, () => expect.unreachable());
    expect(slow.cursor.behind).toBeNull();
    expect(slow.listener.frames).toHaveLength(500);
  });

  it("closes a listener whose events are gone", () => {
    const { emit, listen, pushFrames, release } = createGroup();
    const slow = listen("live");
    pushFrames(20);
    emit(0);
    slow.listener.isFull = true;
    release(0);
    for (let index = 1; index < 200; index += 1) {
      emit(index);
      release(index);
    }
    expect(slow.listener.ended).toEqual({ code: 4408, reason: "slow_consumer" });
  });
});

describe("DeliveryGroup, policy captions", () => {
  function squeezed() {
    const made = createGroup();
    const slow = made.listen("captions");
    const healthy = made.listen("captions");
    const gaps: object[] = [];
    const step = (index: number): number => {
      made.emit(index * 20);
      made.pushFrames(1);
      return made.release(index * 20);
    };
    return {
      ...made,
      slow,
      healthy,
      gaps,
      step,
      drain: () => made.group.catchUp(slow.cursor, (_, gap) => gaps.push(gap)),
    };
  }

  it("leaves audio out while the socket is short, sends every event, and counts the frames when it has drained", () => {
    const { slow, healthy, gaps, step, drain, rendition } = squeezed();
    expect(step(0)).toBe(2);
    slow.listener.buffered = 65_536 / 8 + 1;
    for (let index = 1; index < 6; index += 1) expect(step(index)).toBe(1);
    expect(shape(slow.listener)).toEqual([0, "f", 20, 40, 60, 80, 100]);
    // Not before it is emitted.
    slow.listener.buffered = 0;
    step(6);
    expect(slow.listener.frames).toHaveLength(1);
    drain();
    expect(gaps).toEqual([{ frames: 6, ms: 120 }]);
    step(7);
    drain();
    expect(gaps).toHaveLength(1);
    expect(slow.listener.frames).toHaveLength(2);
    expect(slow.cursor.framesSent + 6).toBe(rendition.next);
    expect(healthy.listener.frames).toHaveLength(8);
  });

  it("falls behind where even the events fill its socket, and then gets every event and the whole gap", () => {
    const { slow, healthy, gaps, step, drain, rendition } = squeezed();
    step(0);
    slow.listener.buffered = 65_536 / 8 + 1;
    step(1);
    slow.listener.isFull = true;
    step(2);
    for (let index = 3; index < 9; index += 1) step(index);
    expect(slow.cursor.behind).not.toBeNull();
    slow.listener.isFull = false;
    slow.listener.buffered = 0;
    drain();
    expect(slow.cursor.behind).toBeNull();
    expect(gaps.reduce<number>((sum, gap) => sum + (gap as { frames: number }).frames, 0)).toBe(8);
    expect(slow.cursor.framesSent + 8).toBe(rendition.next);
    expect(slow.listener.events).toEqual(healthy.listener.events);
  });

  it("a cut reports what was left out before it", () => {
    const { group, slow, gaps, step } = squeezed();
    step(0);
    slow.listener.buffered = 65_536 / 8 + 1;
    step(1);
    step(2);
    group.jumpTo(2, (_, gap) => gaps.push(gap));
    expect(gaps).toEqual([{ frames: 2, ms: 40 }]);
    group.jumpTo(2, () => expect.unreachable());
    expect(group.frame).toBe(2);
  });
});

describe("DeliveryGroup.unsentEvent()", () => {
  it("is behind what was sent, not behind what was only collected", () => {
    const { group, emit, listen, pushFrames } = createGroup();
    const { cursor } = listen();
    emit(0);
    pushFrames(1);
    group.collect(0);
    expect(group.unsentEvent(cursor)).toBe(0);
    group.send();
    expect(group.unsentEvent(cursor)).toBe(1);
    cursor.behind = { frame: 0, event: 0, isJoining: true };
    expect(group.unsentEvent(cursor)).toBe(0);
  });
});

describe("DeliveryGroup.sendEventsBefore()", () => {
  it("sends a lone listener the events before its place, each once", () => {
    const { group, emit, listen, pushFrames, release } = createGroup();
    const { listener, cursor } = listen();
    emit(0);
    emit(30);
    emit(100);
    group.sendEventsBefore(cursor, 50 * TICKS_PER_MS);
    expect(shape(listener)).toEqual([0, 30]);
    pushFrames(8);
    release(1000);
    expect(shape(listener).filter((item) => item !== "f")).toEqual([0, 30, 100]);
  });

  it("leaves one in step with others alone", () => {
    const { group, emit, listen } = createGroup();
    const { listener, cursor } = listen();
    listen();
    emit(0);
    group.sendEventsBefore(cursor, 50 * TICKS_PER_MS);
    expect(listener.sent).toEqual([]);
  });
});
