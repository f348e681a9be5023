/** What it costs to put frames into each carrier's words, in this process: CPU a frame, beside the least that can be done. */
import { RtpPacketizer, rtpPayload } from "../../src/audio/containers/rtp.ts";
import { audioSocketKind, audioSocketPackets } from "../../src/protocol/carrier/audiosocket.ts";
import type { CallVia, CarrierName, Wire } from "../../src/protocol/carrier/carrier.ts";
import { bytesPerMs } from "../../src/protocol/carrier/carrier-format.ts";
import { DIALECTS } from "../../src/protocol/carrier/index.ts";
import type { AudioFormat } from "../../src/protocol/vocabulary.ts";
import { Random } from "./random.ts";
import { median } from "./statistics.ts";

export interface DialectCost {
  readonly carrier: CallVia;
  readonly format: AudioFormat;
  /** CPU of a frame in the carrier's words, us. */
  readonly frameUs: number;
  /** CPU of the same frame as bare base64 where the carrier takes text, else as a copy, us. */
  readonly bareUs: number;
  readonly bare: "base64" | "copy";
}

/** Frames of a batch: what a lead of 500 ms sends in one wake. */
const BATCH_FRAMES = 5;
const FRAME_MS = 20;

/** The least that each carrier begins a call with. */
const BEGINNINGS: Readonly<Record<CarrierName, string>> = {
  twilio: JSON.stringify({
    event: "start",
    streamSid: "MZ18ad3ab5a668481ce02b83e7395059f0",
    start: {
      streamSid: "MZ18ad3ab5a668481ce02b83e7395059f0",
      callSid: "CA0a1b2c3d4e5f60718293a4b5c6d7e8f9",
      mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
    },
  }),
  signalwire: JSON.stringify({
    event: "start",
    start: {
      streamSid: "d1a2b3c4-5678-4abc-9def-001122334455",
      mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
    },
  }),
  telnyx: JSON.stringify({
    event: "start",
    stream_id: "32DE0DEA-53CB-4B21-89A4-9E1819C043BC",
    start: { call_control_id: "v2:T02", media_format: { encoding: "PCMU", sample_rate: 8000, channels: 1 } },
  }),
  plivo: JSON.stringify({
    event: "start",
    start: {
      callId: "12345678-1234-1234-1234-123456789abc",
      streamId: "87654321-4321-4321-4321-cba987654321",
      mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000 },
    },
  }),
  vonage: JSON.stringify({ event: "websocket:connected", "content-type": "audio/l16;rate=8000", uuid: "v1" }),
  exotel: JSON.stringify({
    event: "start",
    stream_sid: "MZ5b2f1e0d9c8b7a6f5e4d3c2b1a098765",
    start: {
      stream_sid: "MZ5b2f1e0d9c8b7a6f5e4d3c2b1a098765",
      call_sid: "CA5b2f1e0d9c8b7a6f5e4d3c2b1a098765",
      media_format: { encoding: "audio/x-raw", sample_rate: "8000" },
    },
  }),
  jambonz: JSON.stringify({ callSid: "7a1b2c3d-1111-4222-8333-944455566677", sampleRate: 8000 }),
  asterisk: "MEDIA_START channel_id:1786012345.12 format:ulaw optimal_frame_size:160 ptime:20",
};

const textEncoder = new TextEncoder();
const sendBuffer = new Uint8Array(64 * 1024);

interface Encoder {
  readonly carrier: CallVia;
  readonly format: AudioFormat;
  readonly bare: DialectCost["bare"];
  /** Returns how many bytes or characters came out, so that nothing is left out by the compiler. */
  encode(frames: readonly Uint8Array[]): number;
}

/** `frames`: a round's; `rounds` of each in turn, of which the middle one counts. */
export function dialectCosts(size: { readonly frames: number; readonly rounds: number }): DialectCost[] {
  const encoders = [
    ...Object.keys(DIALECTS).map((name) => overSocket(name as CarrierName)),
    audioSocket(),
    rtp(),
  ];
  return encoders.map((encoder) => {
    const frames = noise(bytesPerMs(encoder.format) * FRAME_MS);
    const bare = encoder.bare === "base64" ? asBase64 : asCopies;
    const took = { encoder: [] as number[], bare: [] as number[] };
    for (let round = 0; round <= size.rounds; round += 1) {
      const [encoderUs, bareUs] = [
        usPerFrame((batch) => encoder.encode(batch), { frames, count: size.frames }),
        usPerFrame(bare, { frames, count: size.frames }),
      ];
      // The first one is the compiler's.
      if (round === 0) continue;
      took.encoder.push(encoderUs);
      took.bare.push(bareUs);
    }
    const { carrier, format } = encoder;
    return {
      carrier,
      format,
      bare: encoder.bare,
      frameUs: median(took.encoder),
      bareUs: median(took.bare),
    };
  });
}

/** Of this process, so that what else the machine does is not in it. */
function usPerFrame(
  encode: (frames: readonly Uint8Array[]) => number,
  work: { readonly frames: readonly Uint8Array[]; readonly count: number },
): number {
  let out = 0;
  const before = process.cpuUsage();
  for (let done = 0; done < work.count; done += work.frames.length) out += encode(work.frames);
  const { user, system } = process.cpuUsage(before);
  if (out === 0) throw new Error("Nothing was encoded, expected every frame");
  return (user + system) / work.count;
}

function overSocket(carrier: CarrierName): Encoder {
  const codec = DIALECTS[carrier].open({ query: new Map(), headers: new Map() });
  const [begun] = codec.read(BEGINNINGS[carrier]);
  if (begun?.kind !== "started") throw new Error(`${carrier} did not begin a call, expected one`);
  const { format } = begun.call;
  const frames = noise(bytesPerMs(format) * FRAME_MS);
  // Some take no short piece: the first batch may give none.
  const sample = [...codec.audio(frames), ...codec.audio(frames)];
  return {
    carrier,
    format,
    bare: typeof sample[0] === "string" ? "base64" : "copy",
    encode: (batch) => codec.audio(batch).reduce((sum, wire) => sum + sentBytes(wire), 0),
  };
}

/** A text is put together and turned into bytes when it is sent: not before, so that has to be done here, too. */
function sentBytes(wire: Wire): number {
  return typeof wire === "string" ? textEncoder.encodeInto(wire, sendBuffer).written : wire.length;
}

function audioSocket(): Encoder {
  const kind = audioSocketKind("pcm_8000") ?? 0;
  return {
    carrier: "audiosocket",
    format: "pcm_8000",
    bare: "copy",
    // A packet for each beat.
    encode: (frames) => frames.reduce((sum, frame) => sum + audioSocketPackets(kind, [frame]).length, 0),
  };
}

function rtp(): Encoder {
  const packets = new RtpPacketizer({
    ...rtpPayload("ulaw_8000"),
    samplesPerFrame: 160,
    ssrc: 1,
    sequence: 1,
    timestamp: 1,
  });
  return {
    carrier: "rtp",
    format: "ulaw_8000",
    bare: "copy",
    encode: (frames) => frames.reduce((sum, frame) => sum + packets.wrap(frame, false).length, 0),
  };
}

/** The same in every run, and as little like silence as speech is. */
function noise(bytes: number): readonly Uint8Array[] {
  const random = new Random(bytes);
  return Array.from({ length: BATCH_FRAMES }, () =>
    Uint8Array.from({ length: bytes }, () => random.below(256)),
  );
}

function asBase64(frames: readonly Uint8Array[]): number {
  let out = 0;
  for (const { buffer, byteOffset, byteLength } of frames) {
    out += sentBytes(Buffer.from(buffer, byteOffset, byteLength).toString("base64"));
  }
  return out;
}

function asCopies(frames: readonly Uint8Array[]): number {
  let out = 0;
  for (const frame of frames) out += frame.slice().length;
  return out;
}
