/** How long a connection may stay, on a clock that the test turns. */
import { createSecretKey } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Access } from "../../../src/access/access.ts";
import { Audit } from "../../../src/access/audit.ts";
import type { Caller } from "../../../src/access/caller.ts";
import { signJwt } from "../../../src/access/jwt.ts";
import { type KeyRing, readKeys } from "../../../src/access/keys.ts";
import { type LeaseHolder, Leases } from "../../../src/access/lease.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

const SECRET = Buffer.alloc(32, "s");
const NOW_S = 1_800_000_000;

const ENTRY = { id: "app", algorithm: "HS256", secret: SECRET.toString("base64url") };

function ringOf(content: object = {}, app: object = {}): KeyRing {
  return readKeys(JSON.stringify({ keys: [{ ...ENTRY, ...app }], ...content }));
}

function createDesk(app: object = {}, content: object = {}) {
  const clock = new FakeClock();
  const beginMs = clock.nowMs();
  const wallMs = (): number => NOW_S * 1000 + clock.nowMs() - beginMs;
  let ring = ringOf(content, app);
  const access = new Access({ keys: () => ring, nowMs: wallMs, takesTokensInUrl: false });
  const audit = new Audit({ log: watchedLog, nowMs: wallMs });
  const leases = new Leases({ access, audit, clock, wallMs });
  const news: string[] = [];
  const holder: LeaseHolder = {
    warn: (endsInMs) => news.push(`warned ${endsInMs}`),
    expired: ({ code }) => news.push(code),
    revoked: ({ code }) => news.push(code),
  };
  const callerOf = (claims: object = {}, vw: object = {}): Caller => {
    const all = { aud: "voicewire", sub: "ann", iat: NOW_S, exp: NOW_S + 300, jti: "t1", ...claims };
    const grants = { sessions: ["*"], allow: ["listen"], ...vw };
    const key = { algorithm: "HS256", key: createSecretKey(SECRET) } as const;
    const credential = signJwt({ ...all, vw: grants }, key, "app");
    return access.identify({ credential, place: "header", origin: "" });
  };
  return {
    clock,
    leases,
    news,
    callerOf,
    begin: (caller: Caller) => leases.begin(caller, holder),
    changeKeys: (next: KeyRing) => {
      ring = next;
      leases.recheck();
    },
  };
}

describe("a lease", () => {
  it("warns 60 s before its end, and ends 25 s after the token has expired", () => {
    const { clock, news, begin, callerOf } = createDesk();
    begin(callerOf());
    clock.advance(264_999);
    expect(news).toEqual([]);
    clock.advance(1);
    expect(news).toEqual(["warned 60000"]);
    clock.advance(59_999);
    expect(news).toEqual(["warned 60000"]);
    clock.advance(1);
    expect(news).toEqual(["warned 60000", "token_expired"]);
  });

  it("gives last words ten minutes, and the keys as they are then change nothing of it", () => {
    const { clock, news, begin, callerOf, changeKeys } = createDesk();
    begin(callerOf({}, { seconds: 120 }));
    clock.advance(120_000);
    changeKeys(ringOf());
    clock.advance(599_999);
    expect(news).toEqual(["warned 60000", "token_expired"]);
    clock.advance(1);
    expect(news).toEqual(["warned 60000", "token_expired", "token_expired"]);
    expect(clock.pending).toBe(0);
  });

  it.each([
    ["seconds count from its beginning, though the token expires before", {}, { seconds: 1000 }, 1000],
    ["session_until stands apart from the token's end", {}, { session_until: NOW_S + 900 }, 900],
    ["the earlier one of both counts", {}, { seconds: 1000, session_until: NOW_S + 900 }, 900],
    ["a key's own end counts too", { expires: new Date((NOW_S + 100) * 1000).toISOString() }, {}, 100],
  ])("%s", (_name, app, grants, endsInS) => {
    const { clock, news, begin, callerOf } = createDesk(app);
    begin(callerOf({}, grants));
    clock.advance(endsInS * 1000 - 1);
    expect(news).not.toContain("token_expired");
    clock.advance(1);
    expect(news).toContain("token_expired");
  });

  it("warns half-way where it is shorter than two minutes, and does so for each new token", () => {
    const { clock, news, begin, callerOf } = createDesk();
    const lease = begin(callerOf({}, { seconds: 60 }));
    clock.advance(29_999);
    expect(news).toEqual([]);
    clock.advance(1);
    expect(news).toEqual(["warned 30000"]);
    lease.refresh(callerOf({ jti: "t2" }, { seconds: 50 }));
    expect(news).toEqual(["warned 30000"]);
    clock.advance(10_000);
    expect(news).toEqual(["warned 30000", "warned 10000"]);
  });

  it("goes on to a new token's end, and warns of that", () => {
    const { clock, news, begin, callerOf } = createDesk();
    const lease = begin(callerOf());
    clock.advance(280_000);
    lease.refresh(callerOf({ exp: NOW_S + 600, jti: "t2" }));
    clock.advance(100_000);
    expect(news).toEqual(["warned 60000"]);
    clock.advance(245_000);
    expect(news).toEqual(["warned 60000", "warned 60000", "token_expired"]);
  });

  it("holds longer than a timer of the runtime can wait", () => {
    const expires = new Date((NOW_S + 40 * 86_400) * 1000).toISOString();
    const { clock, news, begin, callerOf } = createDesk({ expires });
    begin(callerOf({}, { seconds: 39 * 86_400 }));
    clock.advance(38 * 86_400_000);
    expect(news).toEqual([]);
    clock.advance(86_400_000);
    expect(news).toEqual(["warned 60000", "token_expired"]);
  });

  it.each([
    [
      "its key was taken out",
      () => readKeys(JSON.stringify({ keys: [{ id: "b", hash: `sha256:${"0".repeat(64)}` }] })),
    ],
    [
      "its key's secret was changed",
      () => ringOf({}, { secret: Buffer.alloc(32, "x").toString("base64url") }),
    ],
    ["its token was withdrawn", () => ringOf({ revoked: { tokens: ["t1"] } })],
    ["its subject was withdrawn", () => ringOf({ revoked: { subjects: { ann: NOW_S + 1 } } })],
  ])("ends at once where %s", (_name, next) => {
    const { clock, news, begin, callerOf, changeKeys } = createDesk();
    begin(callerOf());
    changeKeys(next());
    expect(news).toEqual(["token_revoked"]);
    expect(clock.pending).toBe(0);
  });

  it("ends soon after its beginning where its token was withdrawn before that, unless it is over by then", () => {
    const { clock, news, begin, callerOf, changeKeys } = createDesk();
    const caller = callerOf();
    changeKeys(ringOf({ revoked: { tokens: ["t1"] } }));
    begin(caller).close();
    begin(caller);
    expect(news).toEqual([]);
    clock.advance(0);
    expect(news).toEqual(["token_revoked"]);
    expect(clock.pending).toBe(0);
  });

  it("the lease of a token that was minted ends with the key that signed it, too", () => {
    const server = { id: "server", hash: `sha256:${"0".repeat(64)}` };
    const both = { keys: [server, { ...ENTRY, mints: true }] };
    const { news, begin, callerOf, changeKeys } = createDesk({}, both);
    const caller = callerOf({ iss: "server" });
    expect(caller.key?.id).toBe("server");
    begin(caller);
    changeKeys(ringOf(both));
    expect(news).toEqual([]);
    changeKeys(ringOf({ keys: [server] }));
    expect(news).toEqual(["token_revoked"]);
  });

  it("begins with no token that an expired key has minted for another", () => {
    const expires = new Date((NOW_S - 1) * 1000).toISOString();
    const server = { id: "server", hash: `sha256:${"0".repeat(64)}` };
    const { callerOf } = createDesk({}, { keys: [server, { ...ENTRY, mints: true, expires }] });
    expect(() => callerOf({ iss: "server" })).toThrow(expect.objectContaining({ reason: "key_expired" }));
  });

  it("ends at once where its token is withdrawn while its last words are spoken", () => {
    const { clock, news, begin, callerOf, changeKeys } = createDesk();
    begin(callerOf());
    clock.advance(325_000);
    changeKeys(ringOf());
    expect(news).toEqual(["warned 60000", "token_expired"]);
    changeKeys(ringOf({ revoked: { tokens: ["t1"] } }));
    expect(news).toEqual(["warned 60000", "token_expired", "token_revoked"]);
    expect(clock.pending).toBe(0);
  });

  it("is of the tenant of its key, whatever the token says", () => {
    expect(createDesk({ tenant: "acme" }).callerOf({}, { tenant: "other" }).tenant).toBe("acme");
    expect(createDesk().callerOf({}, { tenant: "other" }).tenant).toBe("other");
  });

  it("stays where other keys and tokens were withdrawn, and follows its key's grants", () => {
    const { news, begin, callerOf, changeKeys } = createDesk();
    const lease = begin(callerOf());
    changeKeys(
      ringOf(
        { revoked: { tokens: ["t9"], subjects: { ann: NOW_S - 1 } } },
        { grants: { sessions: ["*"], allow: ["speak"] } },
      ),
    );
    expect(news).toEqual([]);
    expect(lease.caller.may("listen")).toBe(false);
  });

  it("says nothing more once it is closed", () => {
    const { clock, leases, news, begin, callerOf, changeKeys } = createDesk();
    begin(callerOf()).close();
    begin(callerOf());
    leases.close();
    leases.close();
    changeKeys(ringOf({ revoked: { tokens: ["t1"] } }));
    clock.advance(1_000_000);
    expect(news).toEqual([]);
  });
});
