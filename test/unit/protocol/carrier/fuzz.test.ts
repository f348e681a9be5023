/** Whatever a carrier sends: events or `carrier_protocol`, and nothing of it in error messages. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import type { CarrierCodec, CarrierEvent, Wire } from "../../../../src/protocol/carrier/carrier.ts";
import { sniffCarrier } from "../../../../src/protocol/carrier/sniff.ts";
import { WIRINGS, WiredCall } from "./wired-call.ts";

/** The words of all dialects, so that random messages get past the first check. */
const WORDS = [
  "event",
  "type",
  "connected",
  "start",
  "media",
  "mark",
  "dtmf",
  "stop",
  "error",
  "streamSid",
  "stream_id",
  "streamId",
  "stream_sid",
  "callSid",
  "call_control_id",
  "mediaFormat",
  "media_format",
  "encoding",
  "sampleRate",
  "sample_rate",
  "payload",
  "chunk",
  "track",
  "name",
  "digit",
  "duration",
  "data",
  "playedStream",
  "clearedAudio",
  "extra_headers",
  "websocket:connected",
  "websocket:dtmf",
  "websocket:notify",
  "websocket:cleared",
  "content-type",
  "MEDIA_START",
  "MEDIA_XOFF",
  "MEDIA_MARK_PROCESSED",
  "DTMF_END",
  "correlation_id",
  "channel_variables",
  "format",
  "PCMU",
  "inbound",
  "optimal_frame_size",
  "ptime",
  "playout",
  "cleared",
  "customParameters",
  "metadata",
  "mixType",
  "__proto__",
  "AAAA",
  "audio/x-mulaw",
  "audio/l16;rate=16000",
  "ulaw",
  "m1",
  "5",
  "160",
  "20",
  "8000",
  "",
] as const;
const word = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...WORDS) },
  { weight: 1, arbitrary: fc.string() },
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    word,
    fc.oneof(fc.constant(null), fc.boolean(), fc.double(), fc.nat(), fc.constantFrom(8000, 16000, 20, 160)),
    fc.dictionary(word, tie("tree"), { maxKeys: 6 }),
    fc.array(tie("tree"), { maxLength: 2 }),
  ),
}));
const object = fc.dictionary(word, tree, { maxKeys: 6 });
const event = fc
  .record({ event: fc.constantFrom(...WORDS), rest: object })
  .map(({ event: name, rest }) => ({ ...rest, event: name }));
const message: fc.Arbitrary<Wire> = fc.oneof(
  fc.oneof(object, event).map((value) => JSON.stringify(value)),
  fc.array(word, { maxLength: 8 }).map((words) => words.join(" ")),
  fc
    .array(fc.tuple(word, word), { maxLength: 8 })
    .map((pairs) => `MEDIA_START ${pairs.map((pair) => pair.join(":")).join(" ")}`),
  fc.string(),
  fc.uint8Array({ maxLength: 400 }),
);

function readSafely(codec: CarrierCodec, wire: Wire): readonly CarrierEvent[] {
  try {
    return codec.read(wire);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "carrier_protocol") return [];
    throw error;
  }
}

describe.each(WIRINGS)("%s", (_, carrier, options) => {
  it("answers any messages with events or carrier_protocol", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), fc.boolean(), (messages, isStarted) => {
        const call = new WiredCall(carrier, options);
        const codec = isStarted ? call.codec : new WiredCall(carrier, options).codec;
        codec.mark("m1");
        for (const wire of messages) {
          for (const each of readSafely(codec, wire)) {
            if (each.kind === "odd") expect(each.what.length).toBeLessThan(120);
            // m1 may be said to be played; it has been asked for.
            if (each.kind === "played") expect(each.name).toBe("m1");
            if (each.kind === "dtmf") expect(each.digit).toMatch(/^[0-9A-D*#]$/);
          }
        }
        codec.clear();
        codec.flush();
        codec.hangUp();
      }),
      { numRuns: 100 },
    );
  });

  it("takes a true message that one character or byte is wrong of", () => {
    const { peer } = new WiredCall(carrier, options);
    const truths = [...peer.opening(), peer.media(new Uint8Array(320)), peer.digit("5"), ...peer.closing()];
    fc.assert(
      fc.property(fc.constantFrom(...truths), fc.nat(), fc.string({ maxLength: 3 }), (truth, at, insert) => {
        if (typeof truth !== "string") return;
        const place = at % (truth.length + 1);
        const bent = truth.slice(0, place) + insert + truth.slice(place + 1);
        for (const codec of [new WiredCall(carrier, options).codec]) readSafely(codec, bent);
      }),
      { numRuns: 100 },
    );
  });
});

describe("sniffCarrier", () => {
  it("has a verdict for anything", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(message, { maxLength: 3 }), (subprotocol, wires) => {
        const texts = wires.filter((wire) => typeof wire === "string");
        expect(
          typeof sniffCarrier(subprotocol, texts) === "string" || sniffCarrier(subprotocol, texts) === null,
        ).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});
