import { describe, expect, it } from "vitest";
import { clientError } from "../../../src/client/client-error.ts";
import { TextCredit } from "../../../src/client/text-credit.ts";
import type { Event, UtteranceDoneEvent } from "../../../src/protocol/events.ts";

function credit(type: "paused" | "resumed", utterance_id: string): Event {
  return { type, seq: 1, at_ms: 0, utterance_id, pending_chars: 900, limit_chars: 800 };
}

/** What has come of the promises after everything that is due has run. */
async function settled(promises: Readonly<Record<string, Promise<void>>>): Promise<string[]> {
  const names: string[] = [];
  for (const [name, promise] of Object.entries(promises)) {
    promise.then(
      () => names.push(name),
      (error: { code: string }) => names.push(`${name} ${error.code}`),
    );
  }
  await new Promise((resolve) => setTimeout(resolve, 0));
  return names.sort();
}

describe("TextCredit", () => {
  it("ready() waits for `resumed` of its own utterance, or of all where none is named", async () => {
    const credits = new TextCredit();
    expect(await settled({ a: credits.ready() })).toEqual(["a"]);
    credits.take(credit("paused", "a"));
    credits.take(credit("paused", "b"));
    expect([credits.isPaused(), credits.isPaused("a"), credits.isPaused("c")]).toEqual([true, true, false]);
    const waits = { a: credits.ready("a"), any: credits.ready(), b: credits.ready("b") };
    expect(await settled(waits)).toEqual([]);
    credits.take(credit("resumed", "a"));
    expect(await settled(waits)).toEqual(["a"]);
    credits.take(credit("resumed", "b"));
    expect(await settled(waits)).toEqual(["a", "any", "b"]);
  });

  it("an utterance that is over holds nobody up", async () => {
    const credits = new TextCredit();
    credits.take(credit("paused", "a"));
    const ready = credits.ready("a");
    credits.take({ type: "utterance.done", utterance_id: "a" } as UtteranceDoneEvent);
    expect(await settled({ ready })).toEqual(["ready"]);
    expect(credits.isPaused()).toBe(false);
  });

  it("failAll() rejects who waits and forgets what was paused", async () => {
    const credits = new TextCredit();
    credits.take(credit("paused", "a"));
    const ready = credits.ready("a");
    credits.failAll(clientError("connection_lost", "gone"));
    expect(await settled({ ready })).toEqual(["ready connection_lost"]);
    expect(credits.isPaused()).toBe(false);
  });
});
