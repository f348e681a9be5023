/** The tone session's longer messages: its greeting, and figures of latency that are always the same. */
import type { HelloEvent, SegmentWaterfall, Waterfall } from "../../src/protocol/events.ts";
import { FRAME_MS, FRAME_SAMPLES } from "./tone.ts";

export const WATERFALL: Waterfall = {
  text_ms: 1,
  queued_ms: 2,
  connected_ms: 3,
  headers_ms: 11,
  first_byte_ms: 24,
  first_sound_ms: 5,
  first_frame_ms: 4,
  total_ms: 50,
  leading_silence_ms: 12,
};

/** Two pieces; the second was ready a second before its turn. */
export function segmentsOf(text: string): SegmentWaterfall[] {
  const middle = text.indexOf(". ") + 2;
  return [
    { ...WATERFALL, start: 0, end: middle },
    { ...WATERFALL, first_frame_ms: 1000, total_ms: 1046, start: middle, end: text.length },
  ];
}

export function greeting(where: {
  readonly session: string;
  readonly epoch: string;
  readonly isListener: boolean;
  readonly startMs: number;
  readonly leadMs: number;
}): Omit<HelloEvent, "seq" | "at_ms"> {
  return {
    type: "hello",
    protocol: 1,
    server: "tone/1",
    session: where.session,
    epoch: where.epoch,
    listener_id: "l1",
    resume_token: where.epoch,
    settings: {
      role: where.isListener ? "listener" : "both",
      format: "opus_48000",
      frame_ms: FRAME_MS,
      framing: "raw",
      band: "full",
      pace: "realtime",
      lead_ms: where.leadMs,
      policy: "live",
      events: ["words"],
      offsets: "utf16",
    },
    audio: {
      codec: "opus",
      sample_rate: 48_000,
      channels: 1,
      frame_ms: FRAME_MS,
      frame_samples: FRAME_SAMPLES,
      frame_bytes: null,
      start_ms: where.startMs,
    },
    limits: {
      message_bytes: 1e6,
      text_chars: 1e4,
      dialogue_inputs: 10,
      queued_utterances: 64,
      inbox_bytes: 1e6,
      listeners: 10,
      lead_ms: 1e4,
      outbox_bytes: 1e6,
      marks: 10,
      credit_chars: 1e4,
      keep_ms: 1e4,
      resume_ms: 3e4,
      resume_reach_ms: 12e3,
      speculate_ms: 1e4,
      connection_minutes: 1440,
      speculate_chars: 1e3,
    },
    ignored: [],
  };
}
