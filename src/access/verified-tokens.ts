/**
 * Tokens whose signature and claims have held, since a client that comes back shows the same one. Until when they hold, and whether
 * they were withdrawn, is not remembered. Bounded: the one that came first is forgotten.
 */
import { hash } from "node:crypto";
import type { Token } from "./caller.ts";
import type { KeyRing } from "./keys.ts";

const MAX_TOKENS = 10_000;

export interface VerifiedToken {
  readonly token: Token;
  /** Claims as they came: who asked the gateway for the token, and since when it holds. */
  readonly issuer: unknown;
  readonly notBefore: unknown;
}

export class VerifiedTokens {
  /** By digest: what opens the door is not kept. */
  readonly #byDigest = new Map<string, VerifiedToken>();
  /** Digests, each in the place of the one that it made forgotten: to look for the first in a map walks over all that went before. */
  readonly #order: string[] = [];
  #next = 0;
  /** Those that verified them: other ones may not. */
  #keys: KeyRing | null = null;

  get size(): number {
    return this.#byDigest.size;
  }

  find(digest: string, keys: KeyRing): VerifiedToken | undefined {
    return keys === this.#keys ? this.#byDigest.get(digest) : undefined;
  }

  add(digest: string, verified: VerifiedToken, keys: KeyRing): void {
    if (keys !== this.#keys) this.#forgetAll();
    this.#keys = keys;
    const oldest = this.#order[this.#next];
    if (oldest !== undefined) this.#byDigest.delete(oldest);
    this.#order[this.#next] = digest;
    this.#next = (this.#next + 1) % MAX_TOKENS;
    this.#byDigest.set(digest, verified);
  }

  #forgetAll(): void {
    this.#byDigest.clear();
    this.#order.length = 0;
    this.#next = 0;
  }
}

/** The digest covers all of the token: another signature is another token. */
export function digestOfToken(jwt: string): string {
  return hash("sha256", jwt, "base64url");
}
