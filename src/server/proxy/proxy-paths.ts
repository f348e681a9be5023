/**
 * Which requests the proxy passes on. Whoever reaches the port acts with the gateway's key, and the vendor's whole
 * interface can make API keys, invite people and place phone calls: so only what is listed here goes upstream.
 */
import type { ProxyPart } from "../../access/grants.ts";
import { GatewayError } from "../../errors.ts";

/**
 * Part of the interface -> `METHOD /path`: `{name}` is one segment of the path, `*` at the end is everything below. HEAD goes
 * with GET. docs/endpoints.md says what each does; test/unit/server/proxy-paths.test.ts holds the two together.
 */
const PARTS: Readonly<Record<ProxyPart, readonly string[]>> = {
  speech: [
    "POST /v1/text-to-speech/{voice_id}",
    "POST /v1/text-to-speech/{voice_id}/stream",
    "POST /v1/text-to-speech/{voice_id}/with-timestamps",
    "POST /v1/text-to-speech/{voice_id}/stream/with-timestamps",
    "POST /v1/text-to-dialogue",
    "POST /v1/text-to-dialogue/stream",
    "POST /v1/text-to-dialogue/with-timestamps",
    "POST /v1/text-to-dialogue/stream/with-timestamps",
    "POST /v1/sound-generation",
    "POST /v1/audio-isolation",
    "POST /v1/audio-isolation/stream",
    "POST /v1/speech-to-speech/{voice_id}",
    "POST /v1/speech-to-speech/{voice_id}/stream",
  ],
  "voices.read": [
    "GET /v1/voices",
    "GET /v2/voices",
    "GET /v1/voices/settings/default",
    "GET /v1/voices/{voice_id}",
    "GET /v1/voices/{voice_id}/settings",
    "GET /v1/voices/{voice_id}/samples/{sample_id}/audio",
  ],
  "voices.write": [
    "POST /v1/voices/add",
    "DELETE /v1/voices/{voice_id}",
    "DELETE /v1/voices/{voice_id}/samples/{sample_id}",
  ],
  // The description, too: it says what there is, as the list of models does.
  "models.read": ["GET /openapi.json", "GET /v1/models"],
  "history.read": [
    "GET /v1/audio-isolation/history",
    "GET /v1/history",
    "GET /v1/history/{history_item_id}",
    "GET /v1/history/{history_item_id}/audio",
    "POST /v1/history/download",
  ],
  "history.write": [
    "DELETE /v1/audio-isolation/history/{history_item_id}",
    "DELETE /v1/history/{history_item_id}",
  ],
  dictionaries: [
    "GET /v1/pronunciation-dictionaries",
    "GET /v1/pronunciation-dictionaries/{dictionary_id}",
    "GET /v1/pronunciation-dictionaries/{dictionary_id}/{version_id}/download",
    "POST /v1/pronunciation-dictionaries/add-from-file",
    "POST /v1/pronunciation-dictionaries/add-from-rules",
    "POST /v1/pronunciation-dictionaries/{dictionary_id}/add-rules",
    "POST /v1/pronunciation-dictionaries/{dictionary_id}/remove-rules",
    "POST /v1/pronunciation-dictionaries/{dictionary_id}/set-rules",
    "PATCH /v1/pronunciation-dictionaries/{dictionary_id}",
  ],
  webhooks: [
    "GET /v1/workspace/webhooks",
    "POST /v1/workspace/webhooks",
    "PATCH /v1/workspace/webhooks/{webhook_id}",
    "DELETE /v1/workspace/webhooks/{webhook_id}",
  ],
  // The vendor's single-use tokens are passed on without keys alone: with keys the gateway makes its own.
  account: ["GET /v1/user", "GET /v1/user/subscription", "POST /v1/single-use-token/{token_type}"],
};

export const PASSED_ON: readonly string[] = Object.values(PARTS).flat();

const PATTERN = /^(GET|POST|PUT|PATCH|DELETE) (\/v[12](?:\/[\w-]+|\/\{\w+\})*(?:\/\*)?)$/;
/** No path of the interface has a slash, a backslash or a percent sign inside a segment. */
const ENCODED_SEPARATOR = /%(?:2f|5c|25)/i;

const VISIBLE_ASCII = /^[\x21-\x7e]*$/;

interface RequestLine {
  readonly method: string;
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
}

interface PassedPath {
  readonly matcher: RegExp;
  /** What a key or token has to name in `proxy`. */
  readonly part: string;
}

export class PassedPaths {
  readonly #byMethod = new Map<string, PassedPath[]>();

  /** `more`: the setting `proxy-paths`, patterns with commas. Throws invalid_config. */
  constructor(more: string) {
    for (const [part, patterns] of Object.entries(PARTS)) {
      for (const pattern of patterns) this.#add(pattern, part);
    }
    for (const pattern of readPatterns(more)) this.#add(pattern, `passthrough:${pattern}`);
  }

  /** The part of the interface that the request belongs to. Throws invalid_path, and not_found where it is not passed on. */
  check({ method, path, query }: RequestLine): string {
    if (!VISIBLE_ASCII.test(path) || !VISIBLE_ASCII.test(query)) {
      throw invalidPath("a character that is not visible ASCII");
    }
    checkSegments(path);
    const passed = this.#byMethod.get(method === "HEAD" ? "GET" : method) ?? [];
    const found = passed.find(({ matcher }) => matcher.test(path));
    if (found !== undefined) return found.part;
    throw new GatewayError(
      "not_found",
      `This gateway does not pass on ${`${method} ${path}`.slice(0, 200)}: it is no endpoint of docs/endpoints.md. ` +
        "Its operator can allow it with the setting proxy-paths",
    );
  }

  #add(pattern: string, part: string): void {
    const [method = "", path = ""] = pattern.split(" ");
    const known = this.#byMethod.get(method) ?? [];
    this.#byMethod.set(method, [...known, { matcher: matcherOf(path), part }]);
  }
}

function readPatterns(setting: string): string[] {
  const entries = setting.split(",").map((entry) => entry.trim().replace(/\s+/g, " "));
  const patterns = entries.filter((entry) => entry !== "");
  const wrong = patterns.find((pattern) => !PATTERN.test(pattern));
  if (wrong === undefined) return patterns;
  throw new GatewayError(
    "invalid_config",
    `Setting proxy-paths: ${JSON.stringify(wrong.slice(0, 100))}, expected a method and a path below /v1 or /v2, ` +
      "e.g. `GET /v1/dubbing/{id}` or `POST /v1/studio/*`, several with commas",
    { field: "proxy-paths" },
  );
}

function matcherOf(path: string): RegExp {
  const source = path
    .replace(/[.]/g, "\\.")
    .replace(/\{\w+\}/g, "[^/]+")
    .replace(/\*$/, ".+");
  return new RegExp(`^${source}$`);
}

/**
 * Refuses what servers read in different ways, before one of them reads it: the path that is checked has to be the path
 * that is served. Throws invalid_path.
 */
function checkSegments(path: string): void {
  if (path.includes("\\") || ENCODED_SEPARATOR.test(path)) {
    throw invalidPath("a backslash, or an encoded slash, backslash or percent sign");
  }
  let decoded: string;
  try {
    // Refuses overlong forms, too: they are no UTF-8 (RFC 3629 section 3).
    decoded = decodeURIComponent(path);
  } catch {
    throw invalidPath("a percent sign that begins no UTF-8 character");
  }
  if (/\p{Cc}/u.test(decoded)) throw invalidPath("a control character");
  const segments = decoded.slice(1).split("/");
  // Some servers take `..;x` for `..`.
  if (segments.some((segment) => /^\.\.?(?:;|$)/.test(segment))) throw invalidPath("a `.` or `..` segment");
  if (segments.slice(0, -1).includes("")) throw invalidPath("an empty segment");
}

function invalidPath(what: string): GatewayError {
  return new GatewayError("invalid_path", `The path has ${what}: send it as the interface writes it`);
}
