/**
 * Scripted faults of the service: what there is, and how they are written in the header `x-voicewire-fault` and in the
 * setting of /service/faults (docs/faults.md).
 */
import { z } from "zod";
import { ApiError } from "../api-error.ts";

export const FAULT_HEADER = "x-voicewire-fault";

const MAX_WAIT_MS = 600_000;
const MAX_BYTES = 1_000_000_000;
const MAX_FAULTS = 16;
const MAX_SIZES = 64;
const waitMs = z.number().min(0).max(MAX_WAIT_MS);
const bytes = z.number().int().min(0).max(MAX_BYTES);
/** Every n-th; 1 = all. */
const every = z.number().int().min(1).max(1000);

const fault = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("latency"), ms: waitMs }),
  z.strictObject({ kind: z.literal("stall"), after_ms_of_audio: waitMs, ms: waitMs }),
  z.strictObject({
    kind: z.literal("chunks"),
    sizes: z.array(z.number().int().min(1).max(MAX_BYTES)).min(1).max(MAX_SIZES),
  }),
  z.strictObject({ kind: z.literal("alignment_missing"), every: every.default(1) }),
  z.strictObject({ kind: z.literal("alignment_late"), chunks: z.number().int().min(1).max(64) }),
  z.strictObject({
    kind: z.literal("alignment_overlap"),
    characters: z.number().int().min(1).max(100).default(3),
  }),
  z.strictObject({ kind: z.literal("alignment_restart") }),
  z.strictObject({ kind: z.literal("alignment_scaled"), factor: z.number().min(0.1).max(10) }),
  z.strictObject({ kind: z.literal("alignment_long"), seconds: z.number().min(0).max(60) }),
  z.strictObject({ kind: z.literal("alignment_ragged"), drop: z.number().int().min(1).max(100).default(1) }),
  z.strictObject({ kind: z.literal("alignment_nan"), every: every.default(3) }),
  z.strictObject({ kind: z.literal("reset"), after_bytes: bytes }),
  z.strictObject({ kind: z.literal("truncated"), after_bytes: bytes }),
  z.strictObject({
    kind: z.literal("status"),
    status: z.union([z.literal(429), z.literal(500), z.literal(503)]),
    /** How many requests get it; without it every one. */
    times: z.number().int().min(1).max(1_000_000).optional(),
    /** Seconds, for the header Retry-After. */
    retry_after: z.number().int().min(0).max(3600).optional(),
  }),
]);
export type Fault = z.infer<typeof fault>;

/** The body of PUT /service/faults. */
export const setting = z.strictObject({
  faults: z.array(fault).max(MAX_FAULTS),
  /** Share of the requests that get them. */
  probability: z.number().min(0).max(1).default(1),
  /** Seeds the dice for `probability`: the same seed gives the same requests. */
  seed: z.number().int().min(0).max(4_294_967_295).default(0),
  /** So many requests get them, then no more. */
  count: z.number().int().min(0).max(1_000_000_000).optional(),
  /** `voicewire_words` in every timed response, as with x-voicewire-truth: 1. */
  truth: z.boolean().default(false),
});
export type FaultSetting = z.infer<typeof setting>;

/** Throws ApiError 422 with an entry for each thing that is wrong, 400 where the body is no JSON. */
export function readSetting(body: Uint8Array | undefined): FaultSetting {
  const value = parseJson(body);
  const parsed = setting.safeParse(value);
  if (parsed.success) return parsed.data;
  throw ApiError.invalid(
    parsed.error.issues.map((issue) => {
      const path = issue.path.filter((step) => typeof step !== "symbol");
      return { type: issue.code, loc: ["body", ...path], msg: issue.message, input: valueAt(value, path) };
    }),
  );
}

function parseJson(body: Uint8Array | undefined): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new ApiError(400, "There was an error parsing the body: expected JSON");
  }
}

function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  let at = value;
  for (const step of path) at = (at as Record<string | number, unknown> | undefined)?.[step];
  return at ?? null;
}

/**
 * `kind key=value key=value; kind ...`, a list with commas: `chunks sizes=1,7; alignment_scaled factor=1.2`.
 * Throws ApiError 400 that says what is wrong.
 */
export function readHeader(text: string): Fault[] {
  const parts = text.split(";").map((part) => part.trim());
  return parts.filter((part) => part !== "").map(readOne);
}

function readOne(part: string): Fault {
  const [kind = "", ...pairs] = part.split(/\s+/);
  const value: Record<string, unknown> = { kind };
  for (const pair of pairs) {
    const [, key, given] = /^(\w+)=([-\w.,]+)$/.exec(pair) ?? [];
    if (key === undefined || given === undefined || key === "kind") {
      throw badHeader(`"${pair.slice(0, 64)}" in "${kind.slice(0, 64)}", expected key=value`);
    }
    value[key] = key === "sizes" ? given.split(",").map(Number) : Number(given);
  }
  const parsed = fault.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const place = [kind.slice(0, 64), ...(issue?.path ?? [])].join(".");
    throw badHeader(`${place}: ${issue?.message ?? "not understood"}`);
  }
  if (parsed.data.kind === "status" && parsed.data.times !== undefined) {
    throw badHeader("status.times counts requests, expected it in PUT /service/faults only");
  }
  return parsed.data;
}

export function faultsAreOff(): ApiError {
  return badHeader("scripted faults are off here, start the service with --faults");
}

function badHeader(what: string): ApiError {
  return ApiError.of({
    type: "validation_error",
    code: "invalid_parameters",
    message: `Invalid ${FAULT_HEADER}: ${what}.`,
    param: FAULT_HEADER,
  });
}
