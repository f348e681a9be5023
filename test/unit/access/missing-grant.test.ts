/** What somebody hears who may not do something. */
import { describe, expect, it } from "vitest";
import { Caller } from "../../../src/access/caller.ts";
import type { Grants } from "../../../src/access/grants.ts";
import type { Key } from "../../../src/access/keys.ts";

const LISTENING: Grants = { sessions: ["support-17", "room-*"], allow: ["listen", "captions"] };

function keyOf(grants: Grants): Key {
  const facts = {
    expiresMs: null,
    signing: null,
    mints: false,
    signsForOthers: false,
    fingerprint: "app",
    tenant: "",
    limits: {},
  };
  return { id: "app", grants, ...facts };
}

function callers(grants: Grants, ofKey: Grants = { sessions: ["*"], allow: ["speak", "listen", "proxy"] }) {
  const key = keyOf(ofKey);
  const token = { id: "t", subject: "ann", grants, signer: key, issuedMs: 0, expiresMs: 0 };
  return { byKey: new Caller(keyOf(grants)), byToken: new Caller(key, token) };
}

function refusalOf(act: () => void): string {
  try {
    act();
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
  return "";
}

describe("a refusal says in one sentence what is missing, and what there is", () => {
  const { byKey, byToken } = callers(LISTENING);

  it.each([
    [
      "an action of a token",
      () => byToken.must("speak"),
      "Your token lacks the grant speak: it has listen and captions",
    ],
    [
      "an action of a key",
      () => byKey.must("call"),
      "Your key lacks the grant call: it has listen and captions",
    ],
    [
      "one of several actions",
      () => byToken.mustAny(["speak", "interrupt", "call"], "room-1"),
      "Your token lacks the grant speak, interrupt or call: it has listen and captions",
    ],
    [
      "a session",
      () => byToken.must("listen", "other"),
      "Your token is not for this session: it is for support-17 and room-*",
    ],
  ])("%s", (_name, act, message) => {
    expect(refusalOf(act)).toBe(message);
  });

  it("voices, models, formats and parts of the proxy", () => {
    const some = {
      voices: ["alice"],
      models: ["m1", "m2-*"],
      formats: ["ulaw_8000"],
      proxy: ["speech" as const],
    };
    const { byToken: caller } = callers({ sessions: ["*"], allow: ["speak", "listen", "proxy"], ...some });
    const messages = [
      () => caller.mustUse({ voiceIds: ["bob"] }),
      () => caller.mustUse({ voiceIds: [], modelId: "m3" }),
      () => caller.mustHear("opus_48000"),
      () => caller.mustPass("history.read"),
    ].map(refusalOf);
    expect(messages).toEqual([
      "Your token does not allow this voice: it has alice",
      "Your token does not allow this model: it has m1 and m2-*",
      "Your token does not allow this format: it has ulaw_8000",
      "Your token does not allow the part history.read of the upstream's interface: it has speech",
    ]);
  });

  it("names no grants of a key to who holds a token of it", () => {
    const { byToken: caller } = callers({ sessions: ["*"], allow: ["speak", "listen"] }, LISTENING);
    expect(refusalOf(() => caller.must("speak"))).toBe("The key of your token lacks the grant speak");
    expect(refusalOf(() => caller.must("listen", "x"))).toBe("The key of your token is not for this session");
  });

  it("where a token and its key have nothing in common", () => {
    const { byToken: caller } = callers({ sessions: ["*"], allow: ["captions"] });
    expect(refusalOf(() => caller.mustAny(["listen", "captions"]))).toBe(
      "Your token and its key do not both have the grant listen or captions",
    );
  });

  it("does not grow with the list", () => {
    const sessions = Array.from({ length: 64 }, (_, index) => `s${index}`);
    const { byToken: caller } = callers({ sessions, allow: ["listen"] });
    expect(refusalOf(() => caller.must("listen", "x"))).toBe(
      "Your token is not for this session: it is for s0, s1, s2, s3, s4, s5, s6, s7 and 56 more",
    );
  });
});
