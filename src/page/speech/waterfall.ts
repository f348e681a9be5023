/** The stages from the first character to the first sound of an utterance, as one row of numbers: gateway first, then browser. */
import type { SegmentWaterfall, Waterfall } from "../../protocol/events.ts";
import type { BrowserStages } from "../sound/sound-latency.ts";

/** The stages that the gateway measures, in their order. */
type GatewayKey = Exclude<keyof Waterfall, "total_ms" | "leading_silence_ms">;

export interface Stage {
  readonly key: string;
  readonly name: string;
  readonly about: string;
}

const GATEWAY_STAGES: readonly (Stage & { readonly field: GatewayKey })[] = [
  { key: "text", field: "text_ms", name: "Text", about: "first character until there was enough to speak" },
  { key: "queued", field: "queued_ms", name: "Queue", about: "enough to speak until its turn came" },
  { key: "connected", field: "connected_ms", name: "Connect", about: "turn until the request was written" },
  { key: "headers", field: "headers_ms", name: "Service", about: "request until the service answered" },
  { key: "first-byte", field: "first_byte_ms", name: "Voice", about: "answer until its first byte of audio" },
  {
    key: "first-sound",
    field: "first_sound_ms",
    name: "Onset",
    about: "first byte until audio that is not silent",
  },
  {
    key: "first-frame",
    field: "first_frame_ms",
    name: "Gateway",
    about: "first sound until its frame was sent",
  },
];

export const STAGES: readonly Stage[] = [
  ...GATEWAY_STAGES,
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
  /** One row for each piece of a text that was spoken in several. */
  readonly segments: readonly SegmentRow[];
}

/** A piece of a text on its way to sound that could be played; what it then waited for its turn stands apart. */
export interface SegmentRow {
  readonly label: string;
  /** In the order of STAGES, up to the first sound. */
  readonly stagesMs: readonly number[];
  readonly totalMs: number;
  /** How long it was ready before its turn, ms. */
  readonly spareMs: number;
}

/** Characters of a text that name it, or a piece of it. */
const LABEL_CHARS = 40;

export function rowOf(parts: {
  /** Text of the utterance. */
  readonly text: string;
  readonly gateway: Waterfall;
  readonly segments: readonly SegmentWaterfall[];
  readonly browser: BrowserStages | null;
  readonly ahead: number;
}): Row {
  const { text, gateway, browser, segments } = parts;
  const networkMs =
    browser?.sentToFrameMs == null ? null : Math.max(0, browser.sentToFrameMs - gateway.total_ms);
  const stagesMs = [
    ...GATEWAY_STAGES.map(({ field }) => gateway[field]),
    networkMs,
    browser?.decodeMs ?? null,
    browser?.playoutMs ?? null,
  ];
  return {
    label: shortened(text.trim(), LABEL_CHARS),
    stagesMs,
    totalMs: stagesMs.reduce<number>((sum, ms) => sum + (ms ?? 0), 0),
    ahead: parts.ahead,
    leadingSilenceMs: gateway.leading_silence_ms,
    segments: segments.length > 1 ? segments.map((segment) => segmentRowOf(text, segment)) : [],
  };
}

function segmentRowOf(text: string, segment: SegmentWaterfall): SegmentRow {
  const stagesMs = GATEWAY_STAGES.slice(0, -1).map(({ field }) => segment[field]);
  return {
    label: shortened(text.slice(segment.start, segment.end).trim(), LABEL_CHARS),
    stagesMs,
    totalMs: stagesMs.reduce((sum, ms) => sum + ms, 0),
    spareMs: segment.first_frame_ms,
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

/** The first `max` characters, with an ellipsis in place of the rest. No character is split. */
export function shortened(text: string, max: number): string {
  const characters = Array.from(text);
  return characters.length <= max ? text : `${characters.slice(0, max).join("").trimEnd()}…`;
}
