import { describe, expect, it } from "vitest";
import { Replies } from "../../../src/client/replies.ts";
import type { ErrorEvent, Event } from "../../../src/protocol/events.ts";

const base = { seq: 1, at_ms: 0 };

function queued(utterance_id: string): Event {
  return { type: "utterance.queued", ...base, utterance_id, ahead: 0 };
}

function error(code: string, utterance_id?: string): ErrorEvent {
  const id = utterance_id === undefined ? {} : { utterance_id };
  return { type: "error", ...base, code, message: code, retryable: false, ...id };
}

/** How a promise stands after everything that is due has run. */
async function standing(promise: Promise<unknown>): Promise<string> {
  const pending = new Promise((resolve) => setTimeout(() => resolve("pending"), 0));
  return String(
    await Promise.race([
      promise.then(
        () => "resolved",
        (reason: { code: string }) => reason.code,
      ),
      pending,
    ]),
  );
}

describe("Replies", () => {
  it("take() resolves the entry with the same id, whatever the order", async () => {
    const replies = new Replies();
    const first = replies.expect("utterance.queued", "a");
    const second = replies.expect("utterance.queued", "b");
    replies.take(queued("b"));
    expect(await standing(second)).toBe("resolved");
    expect(await standing(first)).toBe("pending");
  });

  it("take() rejects the oldest command with an error that names nothing", async () => {
    const replies = new Replies();
    const speak = replies.expect("utterance.queued", "a");
    const ping = replies.expect("pong", 1);
    replies.take(error("text_too_long"));
    expect(await standing(speak)).toBe("text_too_long");
    expect(await standing(ping)).toBe("pending");
  });

  it("take() leaves commands alone when an utterance accepted before fails", async () => {
    const replies = new Replies();
    const speak = replies.expect("utterance.queued", "new");
    const interrupt = replies.expect("interrupted", "old");
    replies.take(error("upstream_failed", "old"));
    expect(await standing(speak)).toBe("pending");
    expect(await standing(interrupt)).toBe("pending");
  });

  it("take() rejects the interrupt and no other command with nothing_to_interrupt", async () => {
    const replies = new Replies();
    const speak = replies.expect("utterance.queued", "a");
    const interrupt = replies.expect("interrupted");
    replies.take(error("nothing_to_interrupt"));
    expect(await standing(interrupt)).toBe("nothing_to_interrupt");
    expect(await standing(speak)).toBe("pending");
  });

  it("take() rejects the resume and no other command with what only it can be refused with", async () => {
    for (const code of ["nothing_to_resume", "resume_expired"]) {
      const replies = new Replies();
      const speak = replies.expect("utterance.queued", "a");
      const interrupt = replies.expect("interrupted", "u");
      const other = replies.expect("utterance.resumed", "v");
      const resume = replies.expect("utterance.resumed", "u");
      replies.take(error(code, "u"));
      expect(await standing(resume)).toBe(code);
      for (const promise of [speak, interrupt, other]) expect(await standing(promise)).toBe("pending");
    }
  });

  it("failAll() rejects everything that waits, and nothing that came after", async () => {
    const replies = new Replies();
    const before = replies.expect("pong", 1);
    replies.failAll("connection_lost", "gone");
    const after = replies.expect("pong", 2);
    expect(await standing(before)).toBe("connection_lost");
    expect(await standing(after)).toBe("pending");
  });
});
