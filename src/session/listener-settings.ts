/** What a connection asks for in its query (or in `configure`): read, checked and filled up with defaults. */
import { isFrameLengthAllowed } from "../audio/formats.ts";
import { GatewayError } from "../errors.ts";
import type { ConfigureCommand } from "../protocol/commands.ts";
import {
  BANDS,
  CALLER_FORMATS,
  type CallerFormat,
  CUE_MODES,
  CUE_PROFILES,
  EVENT_KINDS,
  type EventKind,
  FRAMINGS,
  LISTENER_FORMATS,
  type ListenerSettings,
  OFFSET_UNITS,
  PACES,
  POLICIES,
  ROLES,
} from "../protocol/vocabulary.ts";

import { parseReturn, type ReturnRequest } from "./connections/return-token.ts";

export interface SettingsDefaults {
  readonly leadMs: number;
  readonly maxLeadMs: number;
}

export interface ParsedSettings {
  readonly settings: ListenerSettings;
  /** Query keys that are not known. */
  readonly ignored: readonly string[];
  /** What the connection has already, where it comes back. */
  readonly resume: ReturnRequest | null;
  /** A listener that would rather wait in a session that nobody has opened yet than be refused. */
  readonly mayWait: boolean;
}

/** Keys that are no settings of the connection. */
const FOREIGN_KEYS: ReadonlySet<string> = new Set(["resume", "seq", "at_ms", "wait"]);

/** Throws unknown_format, unknown_event or invalid_field with the key. */
export function parseSettings(query: URLSearchParams, defaults: SettingsDefaults): ParsedSettings {
  const ignored: string[] = [];
  const raw = new Map<string, string>();
  for (const [key, value] of query) {
    if (KNOWN_KEYS.has(key)) raw.set(key, value);
    else if (!FOREIGN_KEYS.has(key)) ignored.push(key);
  }
  const role = choice("role", raw.get("role"), ROLES) ?? "both";
  const format = formatOf(raw.get("format")) ?? (role === "speaker" ? "none" : "pcm_24000");
  const caller = choice("caller", raw.get("caller"), CALLER_FORMATS);
  const settings = complete(
    {
      format,
      frame_ms: numberOf("frame_ms", raw.get("frame_ms")),
      framing: choice("framing", raw.get("framing"), FRAMINGS),
      band: choice("band", raw.get("band"), BANDS),
      pace: choice("pace", raw.get("pace"), PACES),
      lead_ms: numberOf("lead_ms", raw.get("lead_ms")),
      policy: choice("policy", raw.get("policy"), POLICIES),
      events: eventsOf(raw.get("events")),
      offsets: choice("offsets", raw.get("offsets"), OFFSET_UNITS),
      cue_profile: choice("cue_profile", raw.get("cue_profile"), CUE_PROFILES),
      cue_mode: choice("cue_mode", raw.get("cue_mode"), CUE_MODES),
    },
    { role, caller, defaults },
  );
  return {
    settings,
    ignored,
    resume: parseReturn(query),
    mayWait: choice("wait", query.get("wait") ?? undefined, ["true", "false"]) === "true",
  };
}

/** The settings after a `configure`: what it names changes, the rest stays. */
export function reconfigure(
  current: ListenerSettings,
  change: ConfigureCommand,
  defaults: SettingsDefaults,
): ListenerSettings {
  return complete(
    {
      format: change.format ?? current.format,
      frame_ms: change.frame_ms ?? current.frame_ms,
      framing: change.framing ?? current.framing,
      band: change.band ?? current.band,
      pace: change.pace ?? current.pace,
      lead_ms: change.lead_ms ?? current.lead_ms,
      policy: change.policy ?? current.policy,
      events: change.events ?? current.events,
      offsets: change.offsets ?? current.offsets,
      cue_profile: change.cue_profile ?? current.cue_profile,
      cue_mode: change.cue_mode ?? current.cue_mode,
    },
    { role: current.role, caller: current.caller, defaults },
  );
}

const KNOWN_KEYS: ReadonlySet<string> = new Set([
  "role",
  "format",
  "frame_ms",
  "framing",
  "band",
  "pace",
  "lead_ms",
  "policy",
  "events",
  "offsets",
  "cue_profile",
  "cue_mode",
  "caller",
]);

type Given = { [K in keyof Omit<ListenerSettings, "role" | "caller">]: ListenerSettings[K] | undefined };

function complete(
  given: Given,
  context: {
    readonly role: ListenerSettings["role"];
    readonly caller: CallerFormat | undefined;
    readonly defaults: SettingsDefaults;
  },
): ListenerSettings {
  const format = given.format ?? "none";
  const frameMs = given.frame_ms ?? 20;
  const pace = given.pace ?? "realtime";
  const leadMs = given.lead_ms ?? context.defaults.leadMs;
  if (!Number.isInteger(frameMs) || frameMs < 10 || frameMs > 100 || frameMs % 10 !== 0) {
    throw invalid("frame_ms", `${frameMs}, expected a multiple of 10 from 10 to 100`);
  }
  if (format !== "none" && !isFrameLengthAllowed(format, frameMs)) {
    const expected =
      format === "opus_48000" ? "10, 20, 40 or 60" : "a length of whole samples (20, 40, 60, 80, 100)";
    throw invalid("frame_ms", `${frameMs}, which ${format} can't be framed in, expected ${expected}`);
  }
  // Binary messages have no name: a connection gets either the speech or the caller's voice.
  if (context.caller !== undefined && (context.role !== "speaker" || format !== "none")) {
    throw invalid("caller", `${context.caller}, which only role=speaker with format=none may have`);
  }
  if (leadMs < 0 || leadMs > context.defaults.maxLeadMs) {
    throw invalid("lead_ms", `${leadMs}, expected 0 to ${context.defaults.maxLeadMs}`);
  }
  const events = given.events ?? ["characters", "words", "segments", "marks"];
  return {
    role: context.role,
    format,
    frame_ms: frameMs,
    framing: given.framing ?? "raw",
    band: given.band ?? "full",
    pace,
    lead_ms: leadMs,
    // A burst listener takes what it gets as fast as it can: dropping would only lose what it could have waited for.
    policy: given.policy ?? (pace === "burst" ? "lossless" : "live"),
    events,
    offsets: given.offsets ?? "utf16",
    ...(events.includes("cues")
      ? { cue_profile: given.cue_profile ?? "web", cue_mode: given.cue_mode ?? "pop-on" }
      : {}),
    ...(context.caller === undefined ? {} : { caller: context.caller }),
  };
}

function formatOf(value: string | undefined): ListenerSettings["format"] | undefined {
  if (value === undefined) return undefined;
  const format = LISTENER_FORMATS.find((name) => name === value);
  if (format === undefined) {
    throw new GatewayError(
      "unknown_format",
      `Format is ${quoted(value)}, expected one of ${LISTENER_FORMATS.join(", ")}`,
      { field: "format" },
    );
  }
  return format;
}

function eventsOf(value: string | undefined): EventKind[] | undefined {
  if (value === undefined) return undefined;
  const names = value.split(",").filter((name) => name !== "" && name !== "none");
  return names.map((name) => {
    const kind = EVENT_KINDS.find((known) => known === name);
    if (kind === undefined) {
      throw new GatewayError(
        "unknown_event",
        `Event is ${quoted(name)}, expected any of ${EVENT_KINDS.join(", ")}`,
        {
          field: "events",
        },
      );
    }
    return kind;
  });
}

function numberOf(key: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number))
    throw invalid(key, `${quoted(value)}, expected a number`);
  return number;
}

function choice<const T extends string>(
  key: string,
  value: string | undefined,
  choices: readonly T[],
): T | undefined {
  if (value === undefined) return undefined;
  const found = choices.find((candidate) => candidate === value);
  if (found === undefined) throw invalid(key, `${quoted(value)}, expected one of ${choices.join(", ")}`);
  return found;
}

function invalid(field: string, rest: string): GatewayError {
  return new GatewayError("invalid_field", `Setting ${field} is ${rest}`, { field });
}

function quoted(value: string): string {
  return JSON.stringify(value.slice(0, 40));
}
