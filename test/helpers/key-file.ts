/** A file of keys for a gateway under test, and tokens that its signing keys have signed. */
import { createPrivateKey, createSecretKey, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Grants } from "../../src/access/grants.ts";
import { type Algorithm, type Claims, signJwt } from "../../src/access/jwt.ts";
import { newStaticKey } from "../../src/access/keys.ts";

const SECRET = Buffer.alloc(32, "s");
/** A key that signs what `tokenFor` makes, without its id. */
export const SIGNING = { algorithm: "HS256", secret: SECRET.toString("base64url") };

/** Entries of a key file beside the ones that each has: `server`, a static key, and `app`, which signs with HS256. */
export interface KeyFileContent {
  readonly keys?: readonly object[];
  /** Of the static key. */
  readonly server?: object;
  /** Of the signing key. */
  readonly app?: object;
  readonly revoked?: object;
}

export class TestKeys implements Disposable {
  readonly path: string;
  /** The static key, as a server sends it. */
  readonly key: string;
  readonly #folder: string;
  readonly #hash: string;

  constructor(content: KeyFileContent = {}) {
    this.#folder = mkdtempSync(join(tmpdir(), "voicewire-keys-"));
    this.path = join(this.#folder, "keys.json");
    const { key, hash } = newStaticKey("server");
    this.key = key;
    this.#hash = hash;
    this.write(content);
  }

  write({ keys = [], server = {}, app = {}, revoked }: KeyFileContent): void {
    const entries = [
      { id: "server", hash: this.#hash, ...server },
      { id: "app", ...SIGNING, mints: true, ...app },
      ...keys,
    ];
    this.writeText(JSON.stringify({ keys: entries, ...(revoked === undefined ? {} : { revoked }) }));
  }

  writeText(text: string): void {
    writeFileSync(this.path, text, { mode: 0o600 });
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

export const LISTENER: Grants = { sessions: ["*"], allow: ["listen"] };
export const SPEAKER: Grants = { sessions: ["*"], allow: ["open", "speak", "listen", "interrupt"] };

export interface TokenOptions {
  readonly claims?: Claims;
  readonly kid?: string;
  readonly lifeSeconds?: number;
}

/** A token that the key `app` has signed. */
export function tokenFor(
  vw: object,
  { claims = {}, kid = "app", lifeSeconds = 300 }: TokenOptions = {},
): string {
  const now = Math.floor(Date.now() / 1000);
  const all = { aud: "voicewire", sub: "ann", iat: now, exp: now + lifeSeconds, vw, ...claims };
  return signJwt(all, { algorithm: "HS256", key: createSecretKey(SECRET) }, kid);
}

/** A key pair: the entry of a key file, and how to sign with it. */
export function signingPair(id: string, algorithm: Exclude<Algorithm, "HS256">) {
  const { publicKey, privateKey } =
    algorithm === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : generateKeyPairSync("ed25519");
  return {
    entry: { id, algorithm, public_key: publicKey.export({ type: "spki", format: "pem" }).toString() },
    sign: (claims: Claims) =>
      signJwt(
        claims,
        { algorithm, key: createPrivateKey(privateKey.export({ type: "pkcs8", format: "pem" })) },
        id,
      ),
  };
}
