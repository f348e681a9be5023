/**
 * The keys of a gateway, as their file has them. A static key is what a server sends: `vwk_ID_SECRET`, of which the file keeps a
 * digest. A signing key is what an application signs its clients' tokens with: a secret (HS256) or a public key.
 */
import {
  createHash,
  createPublicKey,
  createSecretKey,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import { z } from "zod";
import { GatewayError } from "../errors.ts";
import { jsonFault } from "../kit/json-fault.ts";
import { AccessError } from "./access-error.ts";
import { EVERY_SESSION, GRANTS, type Grants, unixSeconds } from "./grants.ts";
import { ALGORITHMS, type Algorithm, type JwtKey } from "./jwt.ts";

const MAX_KEYS = 10_000;
const MAX_REVOKED = 100_000;
/** Shorter secrets can be found by trying (RFC 7518 section 3.2). */
const MIN_SECRET_BYTES = 32;

const keyId = z.string().regex(/^[A-Za-z0-9.-]{1,64}$/, "expected 1 to 64 letters, digits, dots or dashes");
const count = z.number().int().min(1).max(1_000_000_000).exactOptional();

/** Bounds of a key, or of a tenant: of all its keys and tokens together. Without a number: no limit, or that of the settings. */
const LIMITS = z.strictObject({
  connections: count.describe("Connections at once"),
  opens_per_second: count,
  sessions: count.describe("Sessions at once that its clients opened"),
  utterances: count.describe("Utterances at once that wait or speak"),
  proxied_requests: count.describe("Requests at once that are passed upstream"),
  mp3_streams: count.describe("MP3 streams of sessions at once"),
  opus_renditions: count.describe("Opus renditions of sessions that are heard at once"),
  rtp_ports: count.describe("RTP ports at once"),
  characters_per_minute: count,
  bytes_per_second: count.describe("Of messages of each connection, and of request bodies in all"),
});
export type KeyLimits = Readonly<z.infer<typeof LIMITS>>;

const shared = {
  id: keyId,
  tenant: GRANTS.shape.tenant,
  grants: GRANTS.exactOptional(),
  limits: LIMITS.exactOptional(),
  expires: z.iso.datetime({ offset: true }).exactOptional(),
  comment: z.string().max(1000).exactOptional(),
};

const ENTRY = z.union([
  z.strictObject({ ...shared, hash: z.string().regex(/^sha256:[0-9a-f]{64}$/) }),
  z.strictObject({
    ...shared,
    algorithm: z.literal("HS256"),
    secret: z.string().min(1).max(1024).describe("base64url, at least 32 bytes"),
    mints: z.boolean().exactOptional().describe("POST /tokens signs with it"),
  }),
  z.strictObject({ ...shared, algorithm: z.enum(["ES256", "EdDSA"]), public_key: z.string().max(4096) }),
]);

const FILE = z.strictObject({
  $schema: z.string().exactOptional(),
  keys: z.array(z.unknown()).min(1).max(MAX_KEYS),
  tenants: z
    .record(z.string().regex(/^[\w.-]{1,64}$/), LIMITS.omit({ bytes_per_second: true }))
    .exactOptional()
    .describe("Tenant, and its bounds"),
  revoked: z
    .strictObject({
      tokens: z.array(z.string().max(256)).max(MAX_REVOKED).exactOptional(),
      subjects: z
        .record(z.string().max(256), unixSeconds)
        .exactOptional()
        .describe("Subject, and since when its tokens hold again: those issued before do not"),
    })
    .exactOptional(),
});

export interface Key {
  readonly id: string;
  readonly tenant: string;
  readonly grants: Grants;
  readonly limits: KeyLimits;
  /** Milliseconds since 1970; null: it does not expire. */
  readonly expiresMs: number | null;
  /** Tokens are verified with it; null: a static key. */
  readonly signing: JwtKey | null;
  /** POST /tokens and `voicewire token` sign with it. */
  readonly mints: boolean;
  /**
   * Tokens that it signs may stand below another key. One with a tenant, grants or limits is somebody's, who has its secret: what it
   * signs stands below itself.
   */
  readonly signsForOthers: boolean;
  /** Two keys are one where this is alike: an id whose secret was changed is another key. */
  readonly fingerprint: string;
}

export function isExpired({ expiresMs }: Key, nowMs: number): boolean {
  return expiresMs !== null && expiresMs <= nowMs;
}

type SigningKey = Key & { readonly signing: JwtKey };

function isSigning(key: Key): key is SigningKey {
  return key.signing !== null;
}

interface RevokedTokens {
  readonly tokens: ReadonlySet<string>;
  /** Subject, and when its oldest good token was issued, seconds since 1970. */
  readonly subjects: ReadonlyMap<string, number>;
}

/** No secret has it. */
const NO_DIGEST = "-".repeat(64);
const SECRET_BYTES = 32;
/** A static key and a public one: the gateway signs with neither. */
const SIGNS_NOTHING = { mints: false, signsForOthers: false };
/** Length of a secret in base64url. */
const SECRET_CHARS = Math.ceil((SECRET_BYTES * 4) / 3);
/** Static keys begin with it, tokens never do. */
const PREFIX = "vwk_";

export function isStaticKey(text: string): boolean {
  return text.startsWith(PREFIX);
}

export interface KeyRingOptions {
  readonly keys: readonly Key[];
  readonly revoked: RevokedTokens;
  /** By name. */
  readonly tenants: ReadonlyMap<string, KeyLimits>;
}

export class KeyRing {
  readonly revoked: RevokedTokens;
  readonly tenants: ReadonlyMap<string, KeyLimits>;
  readonly #byId = new Map<string, Key>();

  constructor({ keys, revoked, tenants }: KeyRingOptions) {
    this.revoked = revoked;
    this.tenants = tenants;
    for (const key of keys) this.#byId.set(key.id, key);
  }

  get size(): number {
    return this.#byId.size;
  }

  *[Symbol.iterator](): Iterator<Key> {
    yield* this.#byId.values();
  }

  find(id: string): Key | undefined {
    return this.#byId.get(id);
  }

  /** The first key that mints and has not expired. `forOthers`: for tokens that stand below another key. */
  mintingAt(nowMs: number, { forOthers }: { readonly forOthers: boolean }): Key | undefined {
    for (const key of this.#byId.values()) {
      const mayMint = forOthers ? key.signsForOthers : key.mints;
      if (mayMint && !isExpired(key, nowMs)) return key;
    }
    return undefined;
  }

  /** The key whose secret this text has. Throws AccessError. */
  ofSecret(text: string): Key {
    // Without a regular expression: the runtime keeps the text that one was matched with last.
    const key = this.#byId.get(text.slice(PREFIX.length, -1 - SECRET_CHARS));
    // Digests, so that the time says nothing of how much of a secret was right.
    const digest = digestOf(text);
    const expected = key?.signing === null ? key.fingerprint : NO_DIGEST;
    if (timingSafeEqual(Buffer.from(digest), Buffer.from(expected)) && key !== undefined) return key;
    throw new AccessError("unknown_key");
  }

  /** The key that a token names: not a copy, since bounds are kept by key. Throws AccessError. */
  ofToken(kid: string): SigningKey {
    const key = this.#byId.get(kid);
    if (key === undefined || !isSigning(key)) throw new AccessError("unknown_key");
    return key;
  }
}

/** JSON Schema of a key file, for editors. */
export function keyFileSchema(): object {
  return z.toJSONSchema(FILE.extend({ keys: z.array(ENTRY).min(1).max(MAX_KEYS) }), { io: "input" });
}

/** A new secret of a signing key (HS256), as the file has it. */
export function newSecret(): string {
  return randomBytes(MIN_SECRET_BYTES).toString("base64url");
}

/** A new static key: what its owner keeps, and what the file has of it. */
export function newStaticKey(id: string): { readonly key: string; readonly hash: string } {
  const key = `${PREFIX}${id}_${randomBytes(SECRET_BYTES).toString("base64url")}`;
  return { key, hash: `sha256:${digestOf(key)}` };
}

/** The keys of a file's text. Throws invalid_config with what is wrong, never with a secret. */
export function readKeys(json: string): KeyRing {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (thrown) {
    throw invalid(jsonFault(json, thrown));
  }
  const file = FILE.safeParse(value);
  if (!file.success) throw invalid(reasonOf(file.error));
  const keys = file.data.keys.map((entry, index) => keyOf(entry, `keys.${index}`));
  const ids = new Set<string>();
  for (const { id } of keys) {
    if (ids.has(id)) throw invalid(`two keys have the id ${id}`);
    ids.add(id);
  }
  const { tokens = [], subjects = {} } = file.data.revoked ?? {};
  return new KeyRing({
    keys,
    revoked: { tokens: new Set(tokens), subjects: new Map(Object.entries(subjects)) },
    tenants: new Map(Object.entries(file.data.tenants ?? {})),
  });
}

function keyOf(value: unknown, where: string): Key {
  const result = ENTRY.safeParse(value);
  if (!result.success) throw invalid(`${where}: ${reasonOf(result.error)}`);
  const entry = result.data;
  const { id, tenant = "", grants = EVERY_SESSION, limits = {}, expires } = entry;
  const facts = { id, tenant, grants, limits, expiresMs: expires === undefined ? null : Date.parse(expires) };
  if ("hash" in entry) {
    return { ...facts, ...SIGNS_NOTHING, signing: null, fingerprint: entry.hash.slice("sha256:".length) };
  }
  const { algorithm } = entry;
  if (!("secret" in entry)) {
    const key = publicKeyOf(entry.public_key, algorithm, where);
    const der = key.export({ format: "der", type: "spki" });
    return { ...facts, ...SIGNS_NOTHING, signing: { algorithm, key }, fingerprint: digestOf(der) };
  }
  const secret = Buffer.from(entry.secret, "base64url");
  if (secret.length < MIN_SECRET_BYTES) {
    throw invalid(
      `${where}.secret has ${secret.length} bytes, expected base64url of at least ${MIN_SECRET_BYTES}`,
    );
  }
  const signing = { algorithm, key: createSecretKey(secret) };
  const mints = entry.mints ?? false;
  const isBounded = tenant !== "" || entry.grants !== undefined || entry.limits !== undefined;
  return { ...facts, signing, mints, signsForOthers: mints && !isBounded, fingerprint: digestOf(secret) };
}

function publicKeyOf(pem: string, algorithm: Algorithm, where: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch {
    throw invalid(`${where}.public_key is no public key in PEM`);
  }
  const isRight =
    algorithm === "EdDSA"
      ? key.asymmetricKeyType === "ed25519"
      : key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1";
  if (!isRight) {
    const expected = algorithm === "EdDSA" ? "an Ed25519 key" : "a key of the curve P-256";
    throw invalid(`${where}.public_key: ${algorithm} needs ${expected}`);
  }
  return key;
}

function digestOf(secret: string | Uint8Array): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Where and why, without the value: that may be a secret. */
function reasonOf(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue?.code === "invalid_union") {
    return `expected a hash, or algorithm with secret (HS256) or public_key (${ALGORITHMS.slice(1).join(", ")}), and no unknown field`;
  }
  const path = (issue?.path ?? []).join(".");
  const reason = issue?.code === "unrecognized_keys" ? unknownFields(issue.keys) : issue?.message;
  return `${path === "" ? "" : `${path}: `}${reason ?? "it has the wrong shape"}`;
}

/** A secret may stand where a name should: what is as long as one is not shown. */
function unknownFields(names: readonly string[]): string {
  const shown = names.filter((name) => name.length < MIN_SECRET_BYTES);
  return shown.length === 0 ? "it has an unknown field" : `it has an unknown field: ${shown.join(", ")}`;
}

function invalid(what: string): GatewayError {
  return new GatewayError("invalid_config", `Setting keys-file: ${what} (docs/access.md shows a file)`, {
    field: "keys-file",
  });
}
