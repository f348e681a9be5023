/** Who is connected, as one node of a cluster says it to another. Without secrets: keys go by id and fingerprint. */
import { z } from "zod";
import { ANYBODY, Caller } from "./caller.ts";
import { GRANTS } from "./grants.ts";
import type { Key } from "./keys.ts";

const KEY = z.strictObject({ id: z.string(), fingerprint: z.string() });
const ms = z.number();
const TOKEN = z.strictObject({
  id: z.string(),
  subject: z.string(),
  grants: GRANTS,
  signer: KEY,
  issuedMs: ms,
  expiresMs: ms,
});
const PASSED = z.strictObject({ key: KEY.nullable(), token: TOKEN.nullable() });

type PassedCaller = z.infer<typeof PASSED>;

export function passCaller({ key, token }: Caller): PassedCaller {
  return {
    key: key === null ? null : named(key),
    token: token === null ? null : { ...token, signer: named(token.signer) },
  };
}

/** `keyOf`: this node's key of that id. null: it can't be read, or this node does not have the key. */
export function readPassedCaller(value: unknown, keyOf: (id: string) => Key | undefined): Caller | null {
  const parsed = PASSED.safeParse(value);
  if (!parsed.success) return null;
  const { key: passedKey, token: passedToken } = parsed.data;
  if (passedKey === null) return passedToken === null ? ANYBODY : null;
  const key = sameKey(passedKey, keyOf);
  if (key === null || passedToken === null) return key === null ? null : new Caller(key);
  const signer = sameKey(passedToken.signer, keyOf);
  return signer === null ? null : new Caller(key, { ...passedToken, signer });
}

function named({ id, fingerprint }: Key): z.infer<typeof KEY> {
  return { id, fingerprint };
}

function sameKey(
  { id, fingerprint }: z.infer<typeof KEY>,
  keyOf: (id: string) => Key | undefined,
): Key | null {
  const key = keyOf(id);
  return key?.fingerprint === fingerprint ? key : null;
}
