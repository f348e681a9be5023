/**
 * Values of a session as JSON and back: bytes in base64, errors as their rows, what JSON can't write by its name. Who somebody is,
 * and tokens with which one comes back, are written as names that hold in one recording alone.
 */
import { createHmac, randomBytes } from "node:crypto";
import { GatewayError, isErrorCode, toGatewayError } from "../errors.ts";
import { isList, type Json } from "./json.ts";

/** Whose values are never written. */
const SECRET_KEYS: ReadonlySet<string> = new Set(["holder", "account", "token", "resume_token"]);

/** Strings that are no text of anybody: they stay in a recording without texts. */
const PLAIN_KEYS: ReadonlySet<string> = new Set([
  ...["type", "kind", "code", "role", "format", "framing", "band", "pace", "policy", "events", "offsets"],
  ...[
    "cue_profile",
    "cue_mode",
    "caller",
    "profile",
    "mode",
    "codec",
    "server",
    "session",
    "epoch",
    "former_epoch",
  ],
  ...[
    "listener_id",
    "joined",
    "left",
    "utterance_id",
    "utterances",
    "id",
    "outcome",
    "source",
    "state",
    "replace",
  ],
  ...["voice_id", "voiceId", "voiceIds", "model", "model_id", "modelId", "outputFormat", "sourceFormat"],
  ...[
    "language_code",
    "languageCode",
    "applyTextNormalization",
    "requestId",
    "previousRequestIds",
    "timesFrom",
  ],
  ...["opusBitrateKbps", "nobodyListens", "captions", "clean", "field", "timing", "$"],
]);
/** Their numbers say what was said. */
const SPOKEN_KEYS: ReadonlySet<string> = new Set(["visemes", "viseme", "viseme_id", "shape", "weights"]);

const HASH_CHARS = 12;

export interface EncoderOptions {
  /** Texts and audio are written as hashes. */
  readonly isRedacted: boolean;
  /** What is encoded comes from a recording: who somebody is stands there by another name already. Default false. */
  readonly isReplayed?: boolean;
}

export class Encoder {
  readonly #isRedacted: boolean;
  readonly #isReplayed: boolean;
  /** It is kept nowhere: a hash can't be looked up in a table of words. */
  readonly #key = randomBytes(32);

  constructor({ isRedacted, isReplayed = false }: EncoderOptions) {
    this.#isRedacted = isRedacted;
    this.#isReplayed = isReplayed;
  }

  /** The parts of a call; strings that are themselves a part are names. */
  parts(values: readonly unknown[]): Json[] {
    return values.map((value) => (typeof value === "string" ? value : this.value(value)));
  }

  value(value: unknown, key = ""): Json {
    if (SECRET_KEYS.has(key) && typeof value === "string" && value !== "")
      return this.#isReplayed ? value : this.#hash(value);
    if (this.#isRedacted && SPOKEN_KEYS.has(key)) return this.#redacted(JSON.stringify(value) ?? "");
    if (value === null || typeof value === "boolean") return value;
    if (typeof value === "number") return Number.isFinite(value) ? value : { $: "number", is: String(value) };
    if (typeof value === "string") {
      return this.#isRedacted && !PLAIN_KEYS.has(key) && value !== "" ? this.#redacted(value) : value;
    }
    if (typeof value !== "object") return { $: "undefined" };
    if (value instanceof Uint8Array) return this.#bytes(value);
    if (Array.isArray(value)) return this.#list(value, key);
    if (value instanceof Map || value instanceof Set) return this.#list([...value], key);
    if (value instanceof Error) return this.error(value);
    const object: Record<string, Json> = {};
    for (const [name, field] of Object.entries(value)) {
      if (field !== undefined && typeof field !== "function") object[name] = this.value(field, name);
    }
    return object;
  }

  error(thrown: unknown): Json {
    const { code, message, field, retryAfterMs } = toGatewayError(thrown);
    const said = this.#isRedacted ? "" : message;
    return {
      $: "error",
      code,
      message: said,
      ...(field === undefined ? {} : { field }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
  }

  #list(values: readonly unknown[], key: string): Json {
    const areStrings = values.length > 0 && values.every((value) => typeof value === "string");
    // Single characters, or words, would be found by how often each comes.
    if (this.#isRedacted && areStrings && !PLAIN_KEYS.has(key)) return this.#redacted(values.join("\n"));
    return values.map((value) => this.value(value, key));
  }

  #bytes(bytes: Uint8Array): Json {
    if (this.#isRedacted) return { $: "hash", length: bytes.length, is: this.#hash(bytes) };
    return {
      $: "bytes",
      is: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
    };
  }

  #redacted(text: string): Json {
    return { $: "hash", length: text.length, is: this.#hash(text) };
  }

  #hash(value: string | Uint8Array): string {
    return createHmac("sha256", this.#key).update(value).digest("base64url").slice(0, HASH_CHARS);
  }
}

/** What was written; unknown to be what it should: who uses it has to look. */
export function decode(json: Json | undefined): unknown {
  if (json === null || typeof json !== "object") return json;
  if (isList(json)) return json.map(decode);
  if (typeof json.$ === "string") return decodeMarked(json);
  const object: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(json)) object[name] = decode(field);
  return object;
}

function decodeMarked(json: { readonly [key: string]: Json }): unknown {
  const is = typeof json.is === "string" ? json.is : "";
  switch (json.$) {
    case "bytes":
      return Uint8Array.from(Buffer.from(is, "base64"));
    case "number":
      return Number(is);
    case "error": {
      const code = typeof json.code === "string" && isErrorCode(json.code) ? json.code : "internal";
      return new GatewayError(code, typeof json.message === "string" ? json.message : "", {
        ...(typeof json.field === "string" ? { field: json.field } : {}),
        ...(typeof json.retryAfterMs === "number" ? { retryAfterMs: json.retryAfterMs } : {}),
      });
    }
    default:
      return undefined;
  }
}
