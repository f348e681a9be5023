/** The stages from the command to the first sound of an utterance, as one row of numbers: gateway first, then browser. */
import type { Waterfall } from "../protocol/vocabulary.ts";
import type { BrowserStages } from "./sound-latency.ts";

export interface Stage {
  readonly key: "queued" | "headers" | "first-byte" | "first-frame" | "network" | "decode" | "playout";
  readonly name: string;
  readonly about: string;
}

export const STAGES: readonly Stage[] = [
  { key: "queued", name: "Queue", about: "accepted until the request left for the speech service" },
  { key: "headers", name: "Service", about: "request until the service answered" },
  { key: "first-byte", name: "Voice", about: "answer until the first sound was made" },
  { key: "first-frame", name: "Gateway", about: "first sound until its first frame was sent" },
  { key: "network", name: "Network", about: "both ways between this page and the gateway" },
  { key: "decode", name: "Decode", about: "frame here until it was samples" },
  { key: "playout", name: "Playout", about: "samples until heard: jitter buffer and device" },
];

export interface Row {
  readonly label: string;
  /** In the order of STAGES; null where it could not be measured. */
  readonly stagesMs: readonly (number | null)[];
  readonly totalMs: number;
  /** It waited for others: its bar says nothing about speed. */
  readonly ahead: number;
  /** Silence with which the voice itself begins, ms. */
  readonly leadingSilenceMs: number | null;
}

export function rowOf(parts: {
  readonly label: string;
  readonly gateway: Waterfall;
  readonly browser: BrowserStages | null;
  readonly ahead: number;
}): Row {
  const { gateway, browser } = parts;
  const networkMs =
    browser?.sentToFrameMs == null ? null : Math.max(0, browser.sentToFrameMs - gateway.total_ms);
  const stagesMs = [
    gateway.queued_ms,
    gateway.headers_ms,
    gateway.first_byte_ms,
    gateway.first_frame_ms,
    networkMs,
    browser?.decodeMs ?? null,
    browser?.playoutMs ?? null,
  ];
  const totalMs = stagesMs.reduce<number>((sum, ms) => sum + (ms ?? 0), 0);
  return {
    label: parts.label,
    stagesMs,
    totalMs,
    ahead: parts.ahead,
    leadingSilenceMs: gateway.leading_silence_ms,
  };
}

/** The length of the full width, ms: that of the slowest row which did not wait for others. */
export function scaleMs(rows: readonly Row[]): number {
  const unhindered = rows.filter((row) => row.ahead === 0);
  return Math.max(50, ...(unhindered.length > 0 ? unhindered : rows).map((row) => row.totalMs));
}

/** "142 ms", "1.3 ms", "2.41 s". */
export function formatMs(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return ms >= 10 || ms === 0 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}

/** At most `max` characters, whole ones, with an ellipsis for the rest. */
export function shortened(text: string, max: number): string {
  const characters = Array.from(text);
  return characters.length <= max ? text : `${characters.slice(0, max).join("").trimEnd()}…`;
}
