import { describe, expect, it } from "vitest";
import { EventLog, type LoggedEvent } from "../../../src/delivery/event-log.ts";
import { MARK, placed } from "../../helpers/logged.ts";

const add = (log: EventLog, seq: number, positionTicks = seq): LoggedEvent =>
  log.append({ ...MARK, seq }, placed({ positionTicks }));

function logOf(count: number, maxEntries = 1000): EventLog {
  const log = new EventLog(maxEntries);
  for (let seq = 0; seq < count; seq += 1) add(log, seq);
  return log;
}

describe("EventLog", () => {
  it("entry() finds entries by index whatever was trimmed before them", () => {
    const log = logOf(200);
    log.trim(150);
    expect(log.entry(149)).toBeUndefined();
    expect(log.entry(150)?.seq).toBe(150);
    expect(log.entry(199)?.seq).toBe(199);
    expect(log.next).toBe(200);
  });

  it("never holds more than a quarter over its bound and drops the oldest", () => {
    const log = logOf(10_000, 100);
    expect(log.next - log.first).toBeLessThanOrEqual(125);
    expect(log.entry(9999)?.seq).toBe(9999);
  });

  it("indexAt() is the first entry at or after a position, or the end", () => {
    const log = logOf(10);
    expect(log.indexAt(4)).toBe(4);
    expect(log.indexAt(4.5)).toBe(5);
    expect(log.indexAt(99)).toBe(10);
  });

  it("withdraw() marks what is untrue and nothing else", () => {
    const log = logOf(4);
    log.withdraw((one) => one.seq > 2);
    expect([0, 1, 2, 3].map((index) => log.entry(index)?.isWithdrawn)).toEqual([false, false, false, true]);
  });
});

describe("EventLog, for listeners that come back", () => {
  it("after() is where one goes on that has had everything up to a number, and how many are gone", () => {
    const log = new EventLog(1000);
    for (let seq = 1; seq <= 200; seq += 1) add(log, seq);
    expect(log.after(0)).toEqual({ index: 0, lost: 0 });
    expect(log.after(120)).toEqual({ index: 120, lost: 0 });
    log.trim(150);
    expect(log.after(120)).toEqual({ index: 150, lost: 30 });
    expect(log.after(150)).toEqual({ index: 150, lost: 0 });
    expect(log.after(200)).toEqual({ index: 200, lost: 0 });
    log.trim(200);
    expect(log.after(120)).toEqual({ index: 200, lost: 80 });
    expect(log.after(200)).toEqual({ index: 200, lost: 0 });
    expect(new EventLog(10).after(0)).toEqual({ index: 0, lost: 0 });
  });

  it("positionOf() knows the place of what is kept", () => {
    const log = new EventLog(1000);
    for (let seq = 1; seq <= 200; seq += 1) add(log, seq, seq * 10);
    log.trim(100);
    expect(log.positionOf(150)).toBe(1500);
    expect(log.positionOf(100)).toBeUndefined();
    expect(log.positionOf(201)).toBeUndefined();
  });

  it("seqBefore() is the number of the event before a place, kept or not", () => {
    const log = new EventLog(1000);
    expect(log.seqBefore(0)).toBe(0);
    for (let seq = 1; seq <= 3; seq += 1) add(log, seq);
    expect([0, 1, 2, 3].map((index) => log.seqBefore(index))).toEqual([0, 1, 2, 3]);
    log.trim(3);
    expect(log.seqBefore(3)).toBe(3);
  });

  it("before() stops at the first event beyond a place and knows where the last true cut has moved the frames", () => {
    const log = new EventLog(1000);
    const addCut = (seq: number, positionTicks: number, nextTicks: number): LoggedEvent =>
      log.append({ ...MARK, seq }, placed({ positionTicks, nextTicks }));
    add(log, 1, 10);
    addCut(2, 15, 30);
    addCut(3, 90, 99).isWithdrawn = true;
    addCut(4, 40, 50);
    add(log, 5, 60);
    expect(log.before(0, 59)).toEqual({ end: 4, nextTicks: 50 });
    expect(log.before(0, 12)).toEqual({ end: 1, nextTicks: null });
    expect(log.before(0, 30)).toEqual({ end: 3, nextTicks: 30 });
    expect(log.before(4, 100)).toEqual({ end: 5, nextTicks: null });
  });
});
