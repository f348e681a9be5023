/** One line for each who was let in or refused, and no more than ten refusals a second. */
import { describe, expect, it } from "vitest";
import { AccessError } from "../../../src/access/access-error.ts";
import { Audit } from "../../../src/access/audit.ts";
import { ANYBODY, Caller } from "../../../src/access/caller.ts";
import { readKeys } from "../../../src/access/keys.ts";
import type { Logger } from "../../../src/kit/log.ts";

function createAudit() {
  let nowMs = 1_000_000;
  const lines: object[] = [];
  const note = (fields: object): void => {
    lines.push(fields);
  };
  const log: Logger = { debug: note, info: note, warn: note, error: note };
  const audit = new Audit({ log, nowMs: () => nowMs });
  return {
    audit,
    lines,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

const ring = readKeys(JSON.stringify({ keys: [{ id: "server", hash: `sha256:${"0".repeat(64)}` }] }));
const refusal = { surface: "/live/:session", address: "203.0.113.5", subject: null };

describe("the audit log", () => {
  it("names key, address and surface of who is let in, and a digest of the session", () => {
    const { audit, lines } = createAudit();
    const caller = new Caller(ring.find("server") ?? null);
    audit.admitted(caller, { surface: "/live", address: "203.0.113.5", sessionId: "call-17" });
    expect(lines).toEqual([
      {
        audit: "admitted",
        surface: "/live",
        address: "203.0.113.5",
        session: expect.stringMatching(/^[\w-]{16}$/),
        key: "server",
      },
    ]);
  });

  it("says nothing where no keys are set", () => {
    const { audit, lines } = createAudit();
    audit.admitted(ANYBODY, { surface: "/live", address: "203.0.113.5", sessionId: "call-17" });
    expect(lines).toEqual([]);
  });

  it("writes ten refusals a second and counts all of them by reason", () => {
    const { audit, lines, pass } = createAudit();
    for (let count = 0; count < 25; count += 1) {
      audit.refused({ thrown: new AccessError("bad_signature"), ...refusal });
    }
    audit.refused({ thrown: new Error("something else"), ...refusal });
    expect(lines.length).toBe(10);
    pass(1000);
    audit.refused({ thrown: new AccessError("expired"), ...refusal, subject: "ann" });
    expect(lines.at(-1)).toEqual({
      audit: "refused",
      reason: "expired",
      surface: "/live/:session",
      address: "203.0.113.5",
      subject: "ann",
    });
    expect(Object.fromEntries(audit.refusals)).toEqual({ bad_signature: 25, internal: 1, expired: 1 });
  });
});
