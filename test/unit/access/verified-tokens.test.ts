/** Tokens that come back: their signature is not checked twice, all else is. */
import { createSecretKey } from "node:crypto";
import { expect, it } from "vitest";
import { Access } from "../../../src/access/access.ts";
import { AccessError } from "../../../src/access/access-error.ts";
import { type Claims, signJwt } from "../../../src/access/jwt.ts";
import { type KeyRing, readKeys } from "../../../src/access/keys.ts";
import { digestOfToken, VerifiedTokens } from "../../../src/access/verified-tokens.ts";

const NOW_SECONDS = 1_790_000_000;
const GRANTS = { sessions: ["*"], allow: ["listen"] };

function ringOf(secret = "s", revoked: object = {}): KeyRing {
  const entry = { id: "app", algorithm: "HS256", secret: Buffer.alloc(32, secret).toString("base64url") };
  return readKeys(JSON.stringify({ keys: [entry], revoked }));
}

function signed(vw: object = GRANTS, claims: Claims = {}): string {
  const all = { aud: "voicewire", sub: "ann", exp: NOW_SECONDS + 60, jti: "one", vw, ...claims };
  return signJwt(all, { algorithm: "HS256", key: createSecretKey(Buffer.alloc(32, "s")) }, "app");
}

/** A gateway whose keys and clock the test changes. */
function door() {
  const state = { keys: ringOf(), nowMs: NOW_SECONDS * 1000 };
  const access = new Access({
    keys: () => state.keys,
    nowMs: () => state.nowMs,
    takesTokensInUrl: false,
  });
  const show = (credential: string) => access.identify({ credential, place: "header", origin: "" });
  const reason = (credential: string): string => {
    try {
      show(credential);
    } catch (thrown) {
      if (thrown instanceof AccessError) return thrown.reason;
      throw thrown;
    }
    return "";
  };
  return { state, show, reason };
}

it("a token that comes back is what it was the first time", () => {
  const { show } = door();
  const token = signed();
  const first = show(token);
  expect(show(token).token).toBe(first.token);
});

it("a single-use token is not remembered: it does not come back", () => {
  const { show } = door();
  const token = signed({ ...GRANTS, once: true });
  const first = show(token);
  expect(show(token).token).not.toBe(first.token);
  expect(show(token).token).toEqual(first.token);
});

it("a token that was let in is refused when it has expired", () => {
  const { state, show, reason } = door();
  const token = signed();
  show(token);
  state.nowMs += 200_000;
  expect(reason(token)).toBe("expired");
});

it.each<[string, KeyRing, string]>([
  ["is withdrawn", ringOf("s", { tokens: ["one"] }), "revoked"],
  ["has a subject that is withdrawn", ringOf("s", { subjects: { ann: NOW_SECONDS } }), "revoked"],
  ["has a key with another secret", ringOf("o"), "bad_signature"],
])("a token that was let in is refused when it %s", (_name, keys, expected) => {
  const { state, show, reason } = door();
  const token = signed();
  show(token);
  state.keys = keys;
  expect(reason(token)).toBe(expected);
});

it("a token with the claims of one that was let in and another signature is refused", () => {
  const { show, reason } = door();
  const token = signed();
  show(token);
  expect(reason(`${token.slice(0, -4)}AAAA`)).toBe("bad_signature");
});

it("10,000 are remembered: the one that came first is forgotten, and all where the keys are others", () => {
  const tokens = new VerifiedTokens();
  const keys = ringOf();
  const token = door().show(signed()).token;
  if (token === null) throw new Error("The caller has no token");
  const verified = { token, issuer: undefined, notBefore: undefined };
  const digests = Array.from({ length: 10_001 }, (_, index) => digestOfToken(`token ${index}`));
  for (const digest of digests) tokens.add(digest, verified, keys);
  const isKnown = (index: number): boolean => tokens.find(digests[index] ?? "", keys) !== undefined;
  expect([isKnown(0), isKnown(1), isKnown(10_000), tokens.size]).toEqual([false, true, true, 10_000]);
  expect(tokens.find(digests[1] ?? "", ringOf())).toBeUndefined();
  tokens.add("other", verified, ringOf());
  expect(tokens.size).toBe(1);
});
