/**
 * Who shows a credential: keys and tokens are checked here. It reads tokens, and answers from memory: nothing here waits.
 */
import { hash, randomUUID } from "node:crypto";
import { GatewayError } from "../errors.ts";
import { AccessError, type CredentialFacts, naming } from "./access-error.ts";
import { ANYBODY, Caller, type Token } from "./caller.ts";
import { connectionEndOf } from "./connection-end.ts";
import { type Grants, unixSeconds } from "./grants.ts";
import { type Claims, MAX_TOKEN_CHARS, signJwt, verifyJwt } from "./jwt.ts";
import { isExpired, isStaticKey, type Key, type KeyRing } from "./keys.ts";
import { KnownGrants } from "./known-grants.ts";
import type { OtherNodes } from "./other-nodes.ts";
import { readPassedCaller } from "./passed-caller.ts";
import { nameOf, UsedTokens } from "./used-tokens.ts";
import { digestOfToken, type VerifiedToken, VerifiedTokens } from "./verified-tokens.ts";

/** Whom tokens have to be for (RFC 7519 section 4.1.3). */
const AUDIENCE = "voicewire";
/** Clocks of two machines differ by this much. */
const LEEWAY_MS = 60_000;
/** A subject, and a token's id, have at most so many characters. */
const MAX_NAME_CHARS = 128;
/** A stolen token is good for no longer. */
export const MAX_LIFE_MS = 24 * 3_600_000;

/** Where in a request a credential stands. A URL stands in logs and histories, so only single-use tokens may. */
export type Place = "header" | "subprotocol" | "url" | "message";

export interface Presented {
  /** Empty: none. */
  readonly credential: string;
  readonly place: Place;
  /** The Origin header; empty: no web page asks. */
  readonly origin: string;
}

export interface AccessOptions {
  /** The keys as they are now; null: none are set. */
  readonly keys: () => KeyRing | null;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  /** Tokens in URLs may be used more than once (the setting `token-in-url`). */
  readonly takesTokensInUrl: boolean;
  /** Default: the gateway is alone. */
  readonly otherNodes?: () => OtherNodes | null;
}

/** What POST /tokens asks for. */
export interface MintRequest {
  readonly subject: string;
  readonly grants: Grants;
  /** How long it may be redeemed. */
  readonly lifeMs: number;
}

export interface MintedToken {
  readonly token: string;
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly expiresMs: number;
}

export class Access {
  readonly #keys: () => KeyRing | null;
  readonly #nowMs: () => number;
  readonly #takesTokensInUrl: boolean;
  readonly #otherNodes: () => OtherNodes | null;
  readonly #used = new UsedTokens();
  readonly #verified = new VerifiedTokens();
  readonly #grants = new KnownGrants();
  /** Taken for this node, and not used yet. */
  readonly #claimed = new Set<string>();

  constructor({ keys, nowMs, takesTokensInUrl, otherNodes = () => null }: AccessOptions) {
    this.#keys = keys;
    this.#nowMs = nowMs;
    this.#takesTokensInUrl = takesTokensInUrl;
    this.#otherNodes = otherNodes;
  }

  /** No keys are set: whoever reaches the port may do everything. */
  get isOpen(): boolean {
    return this.#keys() === null;
  }

  /** Who shows this. A single-use token is not used up by it. Throws AccessError. */
  identify({ credential, place, origin }: Presented): Caller {
    const keys = this.#keys();
    if (keys === null) return ANYBODY;
    if (credential === "") throw new AccessError("no_credential");
    const caller = isStaticKey(credential)
      ? new Caller(this.#valid(keys.ofSecret(credential)))
      : this.#callerOf(credential, keys);
    naming(
      () => namesOfCaller(caller),
      () => this.#mustOpen(caller, { place, origin }),
    );
    return caller;
  }

  #mustOpen(caller: Caller, { place, origin }: Omit<Presented, "credential">): void {
    if (place === "url" && !caller.isSingleUse && !this.#takesTokensInUrl) {
      throw new AccessError("not_single_use");
    }
    if (!caller.mayComeFrom(origin)) throw new AccessError("wrong_origin");
    if (caller.isSingleUse && this.#used.has(caller)) throw new AccessError("used");
    const nowMs = this.#nowMs();
    const endsMs = connectionEndOf(caller, nowMs);
    // Else it would be let in, and its connection closed at once.
    if (endsMs !== null && endsMs <= nowMs) throw new AccessError("expired");
  }

  /** Whether other nodes have to be asked about single-use tokens. */
  get isShared(): boolean {
    return this.#otherNodes() !== null;
  }

  /**
   * Before a single-use token is redeemed: takes it for this node. null: nobody has to be asked. Gives what lets go of it again
   * unless it was redeemed. Throws what `identify` does; rejects with AccessError, bus_lost, bus_timeout, bus_full.
   */
  claim(presented: Presented): Promise<() => void> | null {
    const others = this.#otherNodes();
    if (others === null) return null;
    const caller = this.identify(presented);
    const { token, isSingleUse } = caller;
    return token === null || !isSingleUse ? null : this.#claim(caller, token, others);
  }

  /**
   * Uses a single-use token up: of two that come at once, one is let in. With other nodes it has to be claimed before. Throws
   * AccessError, rate_limited.
   */
  redeem(caller: Caller): void {
    const { token, isSingleUse } = caller;
    if (token === null || !isSingleUse) return;
    const name = nameOf(caller);
    if (this.isShared && !this.#claimed.has(name))
      throw new TypeError("Other nodes were not asked about the token");
    const times = { untilMs: endOf(token), nowMs: this.#nowMs() };
    if (!this.#used.add(caller, times)) throw new AccessError("used");
    this.#claimed.delete(name);
  }

  /** What it was redeemed for has been refused: a single-use token is good again. Only for who has redeemed it. */
  giveBack(caller: Caller): void {
    if (!caller.isSingleUse) return;
    this.#used.remove(caller);
    this.#otherNodes()?.releaseToken(nameOf(caller));
  }

  /** The same caller by the keys as they are now; null: their key or token holds no more. */
  renewed({ key, token }: Caller): Caller | null {
    const keys = this.#keys();
    if (key === null) return ANYBODY;
    const now = keys === null ? null : sameKey(key, keys);
    if (keys === null || now === null) return null;
    if (token === null) return new Caller(now);
    const signer = sameKey(token.signer, keys);
    return signer === null || isRevoked(token, keys) ? null : new Caller(now, { ...token, signer });
  }

  /** Who is connected to another node. null: it can't be read, or their key or token holds no more here. */
  received(value: unknown): Caller | null {
    const keys = this.#keys();
    const caller = readPassedCaller(value, (id) => keys?.find(id));
    if (caller === null || caller.isAnybody !== (keys === null)) return null;
    return this.renewed(caller);
  }

  /** A token that stands below the caller's key. Throws invalid_config where no key of the file mints, invalid_field. */
  mint(key: Key, { subject, grants, lifeMs }: MintRequest): MintedToken {
    const nowMs = this.#nowMs();
    const minting = key.mints ? key : this.#keys()?.mintingAt(nowMs, { forOthers: true });
    if (minting?.signing == null) throw noMintingKey();
    mustEndLater(grants, nowMs);
    const expiresMs = nowMs + lifeMs;
    const id = randomUUID();
    const claims = {
      iss: key.id,
      sub: subject,
      aud: AUDIENCE,
      iat: Math.floor(nowMs / 1000),
      exp: Math.ceil(expiresMs / 1000),
      jti: id,
      vw: grants,
    };
    const token = signJwt(claims, minting.signing, minting.id);
    if (token.length <= MAX_TOKEN_CHARS) return { token, id, expiresMs };
    const message = `Field 'grants' is not valid: the token would have ${token.length} characters, expected at most ${MAX_TOKEN_CHARS}`;
    throw new GatewayError("invalid_field", message, { field: "grants" });
  }

  async #claim(caller: Caller, token: Token, others: OtherNodes): Promise<() => void> {
    const name = nameOf(caller);
    if (!(await others.claimToken(name, endOf(token)))) throw new AccessError("used");
    this.#claimed.add(name);
    return () => {
      if (this.#claimed.delete(name)) others.releaseToken(name);
    };
  }

  #callerOf(jwt: string, keys: KeyRing): Caller {
    const digest = digestOfToken(jwt);
    const known = this.#verified.find(digest, keys);
    if (known !== undefined) {
      const { token, issuer } = known;
      return naming(
        () => ({ key: askerOf(issuer, token.signer, keys), subject: token.subject, token: token.id }),
        () => this.#holding(known, keys),
      );
    }
    const { claims, kid } = verifyJwt(jwt, (id) => keys.ofToken(id).signing);
    const signer = keys.ofToken(kid);
    return naming(
      () => ({ key: askerOf(claims.iss, signer, keys), ...namesOf(claims) }),
      () => {
        const token = this.#tokenOf(claims, jwt, this.#valid(signer));
        const verified = { token, issuer: claims.iss, notBefore: claims.nbf };
        const caller = this.#holding(verified, keys);
        if (!caller.isSingleUse) this.#verified.add(digest, verified, keys);
        return caller;
      },
    );
  }

  /** Whose a verified token is, as long as it holds. */
  #holding(verified: VerifiedToken, keys: KeyRing): Caller {
    const { token, notBefore } = verified;
    this.#valid(token.signer);
    this.#checkTimes(token, notBefore);
    if (isRevoked(token, keys)) throw new AccessError("revoked");
    return new Caller(this.#ownerOf(verified, keys), token);
  }

  /** A token that this gateway minted stands below the key that asked for it, another below the key that signed it. */
  #ownerOf({ token: { signer }, issuer }: VerifiedToken, keys: KeyRing): Key {
    if (!signer.signsForOthers || issuer === undefined || issuer === signer.id) return signer;
    const owner = typeof issuer === "string" ? keys.find(issuer) : undefined;
    if (owner === undefined) throw new AccessError("unknown_key");
    return this.#valid(owner);
  }

  #tokenOf(claims: Claims, jwt: string, signer: Key): Token {
    const { aud, sub, exp, iat, jti, vw } = claims;
    const isForUs = aud === AUDIENCE || (Array.isArray(aud) && aud.includes(AUDIENCE));
    if (!isForUs) throw new AccessError("wrong_audience");
    const expires = unixSeconds.safeParse(exp);
    const issued = unixSeconds.safeParse(iat ?? 0);
    if (!expires.success) throw new AccessError("bad_claims", { claim: "exp" });
    if (!issued.success) throw new AccessError("bad_claims", { claim: "iat" });
    if (!isName(sub)) throw new AccessError("bad_claims", { claim: "sub" });
    if (jti !== undefined && !isName(jti)) throw new AccessError("bad_claims", { claim: "jti" });
    return {
      id: jti ?? digestOfSigned(jwt),
      subject: sub,
      grants: this.#grants.read(vw, unknownGrant),
      signer,
      issuedMs: issued.data * 1000,
      expiresMs: expires.data * 1000,
    };
  }

  #valid(key: Key): Key {
    if (isExpired(key, this.#nowMs())) {
      throw new AccessError("key_expired", { key: key.id });
    }
    return key;
  }

  #checkTimes({ expiresMs, issuedMs }: Token, notBefore: unknown): void {
    const nowMs = this.#nowMs();
    // Else it would be younger than any withdrawal of its subject.
    if (issuedMs - LEEWAY_MS > nowMs) throw new AccessError("not_yet_valid");
    if (expiresMs + LEEWAY_MS <= nowMs) throw new AccessError("expired");
    if (expiresMs - nowMs > MAX_LIFE_MS + LEEWAY_MS) throw new AccessError("lives_too_long");
    if (notBefore === undefined) return;
    const seconds = unixSeconds.safeParse(notBefore);
    if (!seconds.success) throw new AccessError("bad_claims", { claim: "nbf" });
    if (seconds.data * 1000 - LEEWAY_MS > nowMs) throw new AccessError("not_yet_valid");
  }
}

/** From then on nobody takes it any more. */
function endOf({ expiresMs }: Token): number {
  return expiresMs + LEEWAY_MS;
}

/** null: it is gone, or its secret is another one. */
function sameKey({ id, fingerprint }: Key, keys: KeyRing): Key | null {
  const now = keys.find(id);
  return now?.fingerprint === fingerprint ? now : null;
}

/** Else the token would open nothing. Throws invalid_field. */
function mustEndLater({ session_until: until }: Grants, nowMs: number): void {
  const nowSeconds = Math.floor(nowMs / 1000);
  if (until === undefined || until > nowSeconds) return;
  const message = `Field 'grants.session_until' is not valid: ${until} has passed, expected a time after now (${nowSeconds}), in seconds since 1970`;
  throw new GatewayError("invalid_field", message, { field: "grants.session_until" });
}

function noMintingKey(): GatewayError {
  return new GatewayError(
    "invalid_config",
    'No key makes tokens: add to the key file {"id": "tokens", "algorithm": "HS256", "secret": 32 or more bytes as base64url, ' +
      '"mints": true}, without tenant, grants and limits (docs/access.md)',
    { field: "keys-file" },
  );
}

function unknownGrant(path: readonly PropertyKey[]): AccessError {
  return new AccessError("unknown_grant", { claim: ["vw", ...path].join(".").slice(0, MAX_NAME_CHARS) });
}

function namesOfCaller({ key, token }: Caller): CredentialFacts {
  return { ...(key && { key: key.id }), ...(token && { subject: token.subject, token: token.id }) };
}

/** The id of the key that asked for the token, as far as it is one; else of the key that signed it. */
function askerOf(issuer: unknown, signer: Key, keys: KeyRing): string {
  const asker = signer.signsForOthers && typeof issuer === "string" ? keys.find(issuer) : undefined;
  return (asker ?? signer).id;
}

/** As far as they are ones. */
function namesOf({ sub, jti }: Claims): Pick<CredentialFacts, "subject" | "token"> {
  return { ...(isName(sub) ? { subject: sub } : {}), ...(isName(jti) ? { token: jti } : {}) };
}

/** Whether a value may name a subject or a token. */
function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_NAME_CHARS && /^[\x21-\x7e]+$/.test(value);
}

/** A digest of what is signed: one signature has several spellings. */
function digestOfSigned(jwt: string): string {
  return hash("sha256", jwt.slice(0, jwt.lastIndexOf(".")), "base64url");
}

function isRevoked({ id, subject, issuedMs }: Token, { revoked }: KeyRing): boolean {
  const goodFrom = revoked.subjects.get(subject);
  return revoked.tokens.has(id) || (goodFrom !== undefined && issuedMs < goodFrom * 1000);
}
