/** When a job's client needs its next audio. */
import { describe, expect, it } from "vitest";
import { Deadline, FIRST_PATIENCE_MS } from "../../../../src/service/voice/deadline.ts";

describe("Deadline", () => {
  it("waits for the first frame, then counts in real time from it", () => {
    const deadline = new Deadline(1000, undefined);
    expect(deadline.dueMs).toBe(1000 + FIRST_PATIENCE_MS);
    deadline.noteLeft(200, 1100);
    expect(deadline.dueMs).toBe(1300);
    deadline.noteLeft(600, 1110);
    expect(deadline.dueMs).toBe(1700);
  });

  it("stays where nothing left", () => {
    const deadline = new Deadline(1000, undefined);
    deadline.noteLeft(0, 1100);
    expect(deadline.dueMs).toBe(1000 + FIRST_PATIENCE_MS);
    deadline.noteLeft(200, 1200);
    deadline.noteLeft(200, 1300);
    expect(deadline.dueMs).toBe(1400);
  });

  it("begins where what the client has in hand is over", () => {
    const deadline = new Deadline(1000, 3000);
    expect(deadline.dueMs).toBe(4000);
    deadline.noteLeft(200, 1100);
    expect(deadline.dueMs).toBe(4200);
  });

  it("does not make up for what a player has missed", () => {
    const deadline = new Deadline(1000, 0);
    deadline.noteLeft(200, 1000);
    deadline.noteLeft(300, 9000);
    expect(deadline.dueMs).toBe(9100);
  });
});
