/** Who is connected, told by one node to another: src/access/passed-caller.ts. */
import { createSecretKey } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Access } from "../../../src/access/access.ts";
import { ANYBODY } from "../../../src/access/caller.ts";
import { signJwt } from "../../../src/access/jwt.ts";
import { type KeyRing, readKeys } from "../../../src/access/keys.ts";
import { passCaller } from "../../../src/access/passed-caller.ts";

const SECRET = Buffer.alloc(32, "s");
const NOW_S = 1_800_000_000;
const APP = { id: "app", algorithm: "HS256", secret: SECRET.toString("base64url") };

const ringOf = (...keys: object[]): KeyRing => readKeys(JSON.stringify({ keys }));
const accessOf = (keys: KeyRing | null): Access =>
  new Access({ keys: () => keys, nowMs: () => NOW_S * 1000, takesTokensInUrl: false });

function tokenOf(claims: object = {}): string {
  const vw = { sessions: ["call-*"], allow: ["listen"] };
  const all = { aud: "voicewire", sub: "ann", iat: NOW_S, exp: NOW_S + 300, jti: "t1", vw, ...claims };
  return signJwt(all, { algorithm: "HS256", key: createSecretKey(SECRET) }, "app");
}

/** As the bus carries it. */
const carried = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("a caller that another node has let in", () => {
  it("is the same caller here", () => {
    const [here, there] = [accessOf(ringOf(APP)), accessOf(ringOf(APP))];
    const caller = there.identify({ credential: tokenOf(), place: "header", origin: "" });
    const received = here.received(carried(passCaller(caller)));
    expect(received).toMatchObject({ subject: "ann", token: { id: "t1", expiresMs: (NOW_S + 300) * 1000 } });
    expect([received?.may("listen", "call-7"), received?.may("speak", "call-7")]).toEqual([true, false]);
    expect(received?.may("listen", "other")).toBe(false);
  });

  it("no secret crosses the bus", () => {
    const caller = accessOf(ringOf(APP)).identify({ credential: tokenOf(), place: "header", origin: "" });
    const text = JSON.stringify(passCaller(caller));
    expect(text).not.toContain(APP.secret);
    expect(text).not.toContain(tokenOf());
  });

  it("without keys it is anybody, on both nodes or on none", () => {
    expect(accessOf(null).received(carried(passCaller(ANYBODY)))?.isAnybody).toBe(true);
    expect(accessOf(ringOf(APP)).received(carried(passCaller(ANYBODY)))).toBeNull();
    const known = accessOf(ringOf(APP)).identify({ credential: tokenOf(), place: "header", origin: "" });
    expect(accessOf(null).received(carried(passCaller(known)))).toBeNull();
  });

  it("is refused where its key is another one here, or its token was withdrawn", () => {
    const caller = accessOf(ringOf(APP)).identify({ credential: tokenOf(), place: "header", origin: "" });
    const passed = carried(passCaller(caller));
    const other = { ...APP, secret: Buffer.alloc(32, "o").toString("base64url") };
    expect(accessOf(ringOf(other)).received(passed)).toBeNull();
    expect(accessOf(ringOf({ ...APP, id: "another" })).received(passed)).toBeNull();
    const withdrawn = readKeys(JSON.stringify({ keys: [APP], revoked: { tokens: ["t1"] } }));
    expect(accessOf(withdrawn).received(passed)).toBeNull();
  });

  it.each([null, 7, "app", {}, { key: null, token: {} }, { key: { id: "app" }, token: null }])(
    "%j is nobody",
    (value) => {
      expect(accessOf(ringOf(APP)).received(value)).toBeNull();
      expect(accessOf(null).received(value)).toBeNull();
    },
  );
});
