/** One line for each who was let in or refused, and no more than ten refusals a second. */
import { describe, expect, it } from "vitest";
import { AccessError, forbidden } from "../../../src/access/access-error.ts";
import { Audit } from "../../../src/access/audit.ts";
import { ANYBODY, Caller } from "../../../src/access/caller.ts";
import { readKeys } from "../../../src/access/keys.ts";
import type { Logger } from "../../../src/kit/log.ts";
import { LISTENER } from "../../helpers/key-file.ts";

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
const refusal = { surface: "/live/:session", address: "203.0.113.5", caller: null };

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

  it("names key, token and session of who is refused, where they are known", () => {
    const { audit, lines } = createAudit();
    const key = ring.find("server");
    if (key === undefined) throw new Error("No such key");
    const token = { id: "7f9c", subject: "ann", grants: LISTENER, signer: key, issuedMs: 0, expiresMs: 0 };
    const thrown = forbidden("Not this");
    audit.refused({ ...refusal, thrown, caller: new Caller(key, token), sessionId: "call-17" });
    audit.refused({ ...refusal, thrown, caller: ANYBODY });
    const place = {
      audit: "refused",
      reason: "forbidden",
      surface: "/live/:session",
      address: "203.0.113.5",
    };
    const session: unknown = expect.stringMatching(/^[\w-]{16}$/);
    expect(lines).toEqual([{ ...place, session, key: "server", subject: "ann", token: "7f9c" }, place]);
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
    audit.refused({ thrown: new AccessError("expired"), ...refusal });
    expect(lines.at(-1)).toEqual({
      audit: "refused",
      reason: "expired",
      surface: "/live/:session",
      address: "203.0.113.5",
    });
    expect(Object.fromEntries(audit.refusals)).toEqual({ bad_signature: 25, internal: 1, expired: 1 });
  });
});
