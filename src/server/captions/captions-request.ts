/** The queries of the captions' addresses. */
import { styleOf } from "../../session/captions/cue-tracks.ts";
import { parseLastEventId } from "../../session/connections/return-token.ts";
import type { ParsedSettings, SettingsDefaults } from "../../session/listener-settings.ts";
import { flagOf, invalidQuery, parseJoining } from "../live-request.ts";

export const CAPTION_FILES = ["vtt", "srt"] as const;
export type CaptionFileName = (typeof CAPTION_FILES)[number];

interface CaptionsRequest {
  /** What the session is joined with. */
  readonly joining: ParsedSettings;
  readonly style: ReturnType<typeof styleOf>;
}

export type EventsRequest = CaptionsRequest;

export interface FileRequest extends CaptionsRequest {
  readonly name: CaptionFileName;
  /** Grows until the session ends; otherwise what there is. */
  readonly isLive: boolean;
  /** Marks when each word is spoken. */
  readonly hasWordTimes: boolean;
  /** Where on the timeline the file's times begin, ms; before it where audio beside it begins with silence. */
  readonly originMs: number;
}

/** Keys that mean the same as on a socket. */
const SOCKET_KEYS = ["cue_profile", "cue_mode", "lead_ms", "offsets", "wait"] as const;

/** `lastEventId`: the header's, empty where there is none. Throws invalid_field with the key. */
export function parseEventsRequest(
  query: URLSearchParams,
  { lastEventId, defaults }: { readonly lastEventId: string; readonly defaults: SettingsDefaults },
): EventsRequest {
  const { joining, style } = joiningOf(query, { events: "cues,words" }, defaults);
  const last = lastEventId || query.get("last_event_id");
  return { joining: { ...joining, resume: last ? parseLastEventId(last) : null }, style };
}

/** Throws invalid_field with the key. */
export function parseFileRequest(
  name: CaptionFileName,
  query: URLSearchParams,
  defaults: SettingsDefaults,
): FileRequest {
  return {
    ...joiningOf(query, { events: "cues" }, defaults),
    name,
    isLive: flagOf(query, "live", true),
    hasWordTimes: flagOf(query, "words", false),
    originMs: originOf(query.get("origin_ms")),
  };
}

function joiningOf(
  query: URLSearchParams,
  own: Readonly<Record<string, string>>,
  defaults: SettingsDefaults,
): CaptionsRequest {
  const joining = parseJoining(query, { own: { format: "none", ...own }, keys: SOCKET_KEYS }, defaults);
  return { joining, style: styleOf(joining.settings) };
}

function originOf(value: string | null): number {
  if (value === null) return 0;
  if (/^-?\d{1,12}(\.\d{1,6})?$/.test(value)) return Number(value);
  throw invalidQuery("origin_ms", value, "milliseconds");
}
