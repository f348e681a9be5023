/**
 * The voices of a gateway (`GET /voices`), for --list-voices and --voice by name; and those of an upstream (`GET /v1/voices`),
 * for doctor.
 */
import { ERRORS, type ErrorCode, GatewayError } from "../../errors.ts";
import { splitUpstreamVoice } from "../../protocol/upstream-voice.ts";
import type { UnlistedUpstream } from "../../protocol/voice-list.ts";
import { safeText, textColumns } from "../output/terminal-text.ts";
import { nearest } from "../suggest.ts";

export interface Voice {
  readonly voice_id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What stands for it, where it is a voice of one's own. */
  readonly spokenBy?: readonly string[];
}

export interface VoiceList {
  readonly voices: readonly Voice[];
  /** Upstreams whose voices are missing, and why. */
  readonly unlisted: readonly UnlistedUpstream[];
}

export interface VoicesSource {
  readonly baseUrl: string;
  /** Sent as xi-api-key where it is not empty. */
  readonly key?: string;
}

/** Longest wait for the answer. */
const TIMEOUT_MS = 5_000;

/** The voices of an upstream. Throws `upstream_unreachable`, `upstream_unauthorized` or another `upstream_*` with what to do. */
export async function fetchVoices(source: VoicesSource): Promise<readonly Voice[]> {
  return (await fetchList(source, "/v1/voices")).voices;
}

/** All that may be named at a gateway. Throws as `fetchVoices` does. */
export function fetchOffered(source: VoicesSource): Promise<VoiceList> {
  return fetchList(source, "/voices");
}

async function fetchList({ baseUrl, key = "" }: VoicesSource, path: string): Promise<VoiceList> {
  const url = `${baseUrl.replace(/\/+$/, "")}${path}`;
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(url, {
      headers: key === "" ? {} : { "xi-api-key": key },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    body = await response.json().catch(() => undefined);
  } catch (cause) {
    throw new GatewayError(
      "upstream_unreachable",
      `Voices from ${url}: ${reasonOf(cause)}, expected an answer`,
      {
        cause,
      },
    );
  }
  if (!response.ok) {
    const [code, advice] = BY_STATUS[response.status] ?? ANY_STATUS;
    throw new GatewayError(code, `Voices from ${url}: status ${response.status}, expected 200; ${advice}`);
  }
  const { voices, unlisted }: { readonly voices?: unknown; readonly unlisted?: unknown } =
    typeof body === "object" && body !== null ? body : {};
  if (!Array.isArray(voices)) {
    throw new GatewayError(
      "upstream_protocol",
      `Voices from ${url}: no list of voices, expected {"voices": [...]}`,
    );
  }
  return {
    voices: voices.filter(isVoiceLike).map((voice) => ({
      voice_id: voice.voice_id,
      name: typeof voice.name === "string" ? voice.name : voice.voice_id,
      labels: textFields(voice.labels),
      ...(Array.isArray(voice.spoken_by) ? { spokenBy: voice.spoken_by.map(String) } : {}),
    })),
    unlisted: Array.isArray(unlisted) ? unlisted.filter(isUnlistedLike) : [],
  };
}

/**
 * The id of the voice that `wanted` names: an id, a name, or the beginning of one name only. Throws `unknown_voice`
 * with the nearest name, or why the list that may have it is missing.
 */
export function findVoice({ voices, unlisted }: VoiceList, wanted: string): Voice {
  const lower = wanted.toLowerCase();
  const exact =
    voices.find((voice) => voice.voice_id === wanted) ??
    voices.find((voice) => voice.name.toLowerCase() === lower);
  if (exact !== undefined) return exact;
  // Another upstream may list none of its voices: the gateway says whether it has this one.
  if (splitUpstreamVoice(wanted) !== null) return { voice_id: wanted, name: wanted, labels: {} };
  const beginning = voices.filter((voice) => voice.name.toLowerCase().startsWith(lower));
  if (beginning.length === 1 && beginning[0] !== undefined) return beginning[0];
  // Nearly all voices are the first upstream's: without them nobody can say that there is none.
  const first = unlisted.find(({ upstream }) => upstream === null);
  if (first !== undefined && beginning.length === 0) {
    const code = isErrorCode(first.code) ? first.code : "upstream_failed";
    throw new GatewayError(code, `Voice "${wanted}": ${renderUnlisted(first)}`, { field: "voice" });
  }
  const names = beginning.length > 1 ? beginning.map((voice) => voice.name) : [];
  const near = nearest(
    wanted,
    // An id where no name is near: those of own voices and models are words, too.
    voices.flatMap((voice) => [voice.name, voice.voice_id]),
  );
  const hint =
    names.length > 0
      ? `it could be ${names.slice(0, 5).join(", ")}`
      : near === undefined
        ? "see `voicewire say --list-voices`"
        : `did you mean "${near}"? \`voicewire say --list-voices\` shows all`;
  throw new GatewayError(
    "unknown_voice",
    [`Voice "${wanted}": not one of the ${voices.length} voices`, hint, ...unlisted.map(renderUnlisted)].join(
      "; ",
    ),
    {
      field: "voice",
    },
  );
}

/** A line a voice: name, id, what is known of it. */
export function renderVoices(voices: readonly Voice[]): string {
  const nameWidth = Math.max(4, ...voices.map((voice) => textColumns(voice.name)));
  const idWidth = Math.max(2, ...voices.map((voice) => voice.voice_id.length));
  const lines = voices.map((voice) => {
    const name = safeText(voice.name);
    const padding = " ".repeat(nameWidth - textColumns(name));
    const { spokenBy } = voice;
    const about = spokenBy === undefined ? Object.values(voice.labels).join(", ") : spokenBy.join(" > ");
    const labels = safeText(about);
    return `${name}${padding}  ${safeText(voice.voice_id).padEnd(idWidth)}  ${labels}`.trimEnd();
  });
  return `${lines.join("\n")}\n`;
}

/** Why some voices are not in the list. */
export function renderUnlisted({ upstream, message }: UnlistedUpstream): string {
  const whose = upstream === null ? "of the first upstream" : `that begin with ${upstream}:`;
  return `voices ${whose} can't be listed: ${safeText(message)}`;
}

/** What a failed `fetch` really met: its own message only says that it failed. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.name === "TimeoutError") return "no answer in time";
  const { cause } = thrown;
  if (cause instanceof Error) {
    const code = "code" in cause ? String(cause.code) : "";
    return cause.message || code || thrown.message;
  }
  return thrown.message;
}

const FORBIDDEN = "the key may not list voices; give it the permission, or take another key";
/** What a status means, and what to do about it. */
const BY_STATUS: Readonly<Record<number, readonly [code: ErrorCode, advice: string]>> = {
  401: [
    "upstream_unauthorized",
    "the key is missing or not one of this server; check ELEVENLABS_API_KEY and its region, for a gateway with keys VOICEWIRE_KEY",
  ],
  402: ["upstream_forbidden", FORBIDDEN],
  403: ["upstream_forbidden", FORBIDDEN],
  404: ["upstream_not_found", "there is no such path; check the base URL (it should be the part before /v1)"],
  429: ["upstream_rate_limited", "too many requests at the moment; try again later"],
};
const ANY_STATUS = ["upstream_failed", "try again, or see the upstream's log"] as const;

interface VoiceLike {
  readonly voice_id: string;
  readonly name?: unknown;
  readonly labels?: unknown;
  readonly spoken_by?: unknown;
}

function isVoiceLike(value: unknown): value is VoiceLike {
  return (
    typeof value === "object" && value !== null && "voice_id" in value && typeof value.voice_id === "string"
  );
}

function isUnlistedLike(value: unknown): value is UnlistedUpstream {
  if (typeof value !== "object" || value === null || !("upstream" in value)) return false;
  const isNamed = value.upstream === null || typeof value.upstream === "string";
  return isNamed && "code" in value && "message" in value && typeof value.message === "string";
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

function textFields(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const entries = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return Object.fromEntries(entries);
}
