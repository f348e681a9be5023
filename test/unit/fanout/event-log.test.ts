import { describe, expect, it } from "vitest";
import { EventLog, type LogEntry } from "../../../src/fanout/event-log.ts";

const entry = (seq: number, positionTicks = seq): LogEntry => ({
  seq,
  positionTicks,
  kind: null,
  utteranceId: null,
  bytes: () => new Uint8Array([seq]),
  isWithdrawn: false,
});

function logOf(count: number, maxEntries = 1000): EventLog {
  const log = new EventLog(maxEntries);
  for (let seq = 0; seq < count; seq += 1) log.append(entry(seq));
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
