/**
 * JSON Web Tokens in compact form (RFC 7519, RFC 7515), signed by one of three algorithms. Which one says the key, never the
 * token: a token that names another is refused. All of it is synchronous `node:crypto`, a tenth of the CPU of promises.
 */
import { createHmac, type KeyObject, sign, timingSafeEqual, verify } from "node:crypto";
import { AccessError } from "./access-error.ts";

export const ALGORITHMS = ["HS256", "ES256", "EdDSA"] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/** Longer than any that fits into the 4 KB of headers that a request may have. */
export const MAX_TOKEN_CHARS = 2048;

/** By character code: whether it is of base64url (RFC 4648 section 5). */
const IS_BASE64URL = new Uint8Array(128);
for (const letter of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
  IS_BASE64URL[letter.charCodeAt(0)] = 1;
}

export interface JwtKey {
  readonly algorithm: Algorithm;
  /** HS256: the secret; else a public key to verify with, a private one to sign with. */
  readonly key: KeyObject;
}

/** Claims as they came: only the signature holds for them. */
export type Claims = Readonly<Record<string, unknown>>;

/** The claims of a token whose signature holds, and its key's id. `keyOf`: the key of a `kid`. Throws AccessError. */
export function verifyJwt(
  token: string,
  keyOf: (kid: string) => JwtKey,
): { readonly claims: Claims; readonly kid: string } {
  if (token.length > MAX_TOKEN_CHARS) throw new AccessError("token_too_long");
  const [head = "", body = "", signature = "", ...more] = token.split(".");
  if (more.length > 0 || !isBase64Url(head) || !isBase64Url(body) || !isBase64Url(signature))
    throw new AccessError("malformed");
  const { alg, kid, crit } = objectOf(head);
  // Extensions that have to be understood (RFC 7515 section 4.1.11): there are none.
  if (crit !== undefined || typeof kid !== "string") throw new AccessError("malformed");
  const known = keyOf(kid);
  if (alg !== known.algorithm) throw new AccessError("wrong_algorithm");
  const input = token.slice(0, -1 - signature.length);
  if (!holds(known, input, Buffer.from(signature, "base64url"))) throw new AccessError("bad_signature");
  return { claims: objectOf(body), kid };
}

/** Throws TypeError for a key that can't sign. */
export function signJwt(claims: Claims, { algorithm, key }: JwtKey, kid: string): string {
  const input = `${encode({ alg: algorithm, typ: "JWT", kid })}.${encode(claims)}`;
  const signature =
    algorithm === "HS256"
      ? createHmac("sha256", key).update(input, "latin1").digest()
      : sign(digestOf(algorithm), Buffer.from(input, "latin1"), keyInput(algorithm, key));
  return `${input}.${signature.toString("base64url")}`;
}

function holds({ algorithm, key }: JwtKey, input: string, signature: Buffer): boolean {
  if (algorithm === "HS256") {
    const expected = createHmac("sha256", key).update(input, "latin1").digest();
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  }
  return verify(digestOf(algorithm), Buffer.from(input, "latin1"), keyInput(algorithm, key), signature);
}

/** EdDSA has its own digest (RFC 8032). */
function digestOf(algorithm: Algorithm): string | null {
  return algorithm === "ES256" ? "sha256" : null;
}

/** JOSE has ES256 signatures as two numbers of 32 bytes (RFC 7518 section 3.4), OpenSSL as DER. */
function keyInput(algorithm: Algorithm, key: KeyObject) {
  return algorithm === "ES256" ? ({ key, dsaEncoding: "ieee-p1363" } as const) : key;
}

/** Letter by letter: the runtime keeps the text that a regular expression was matched with last, and this is a secret. */
function isBase64Url(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (IS_BASE64URL[text.charCodeAt(at)] !== 1) return false;
  return true;
}

function encode(value: Claims): string {
  return Buffer.from(JSON.stringify(value), "utf8").toString("base64url");
}

function objectOf(part: string): Claims {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
  } catch {
    throw new AccessError("malformed");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new AccessError("malformed");
  return value as Claims;
}
