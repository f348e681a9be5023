import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import {
  type AudioSocketEvent,
  AudioSocketReader,
  audioSocketCall,
  audioSocketHangUp,
  audioSocketKind,
  audioSocketPackets,
} from "../../../../src/protocol/carrier/audiosocket.ts";

const UUID = "01234567-89ab-cdef-0123-456789abcdef";

function packet(kind: number, payload: readonly number[] | Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(kind, payload.length >> 8, payload.length & 255), Buffer.from(payload)]);
}
const NAMED = packet(0x01, Buffer.from(UUID.replaceAll("-", ""), "hex"));
/** A call with two frames, a digit and a hang-up. */
const CALL = Buffer.concat([
  NAMED,
  packet(0x10, new Uint8Array(320).fill(7)),
  packet(0x03, [0x35]),
  packet(0x12, new Uint8Array(640).fill(9)),
  packet(0x00, []),
]);

/** Events with copies of the audio, pushed in pieces that end at `cuts`. */
function read(bytes: Uint8Array, cuts: readonly number[] = []): AudioSocketEvent[] {
  const events: AudioSocketEvent[] = [];
  const reader = new AudioSocketReader((event) =>
    events.push(event.kind === "media" ? { ...event, audio: new Uint8Array(event.audio) } : event),
  );
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    // Memory that is used again, as a socket's is.
    const lent = new Uint8Array(bytes.subarray(from, Math.max(from, cut)));
    reader.push(lent);
    lent.fill(0xee);
    from = Math.max(from, cut);
  }
  return events;
}

describe("AudioSocketReader", () => {
  it("reports the call, its audio, its digits and its end", () => {
    expect(read(CALL)).toEqual([
      { kind: "call", callId: UUID },
      { kind: "media", format: "pcm_8000", audio: new Uint8Array(320).fill(7) },
      { kind: "dtmf", digit: "5" },
      { kind: "media", format: "pcm_16000", audio: new Uint8Array(640).fill(9) },
      { kind: "stopped", reason: "hang-up" },
    ]);
  });

  it("reads the same wherever the bytes are cut", () => {
    const whole = read(CALL);
    const cuts = fc.array(fc.nat(CALL.length), { maxLength: 20 }).map((list) => list.sort((a, b) => a - b));
    fc.assert(
      fc.property(cuts, (at) => {
        expect(read(CALL, at)).toEqual(whole);
      }),
    );
    expect(read(CALL, [...CALL.keys()])).toEqual(whole);
  });

  it.each([
    ["audio before the call is named", packet(0x10, [0, 0])],
    ["a call named twice", Buffer.concat([NAMED, NAMED])],
    ["a short id", packet(0x01, [1, 2, 3])],
    ["a packet longer than any audio", Buffer.concat([NAMED, Buffer.of(0x10, 0xff, 0xff)])],
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
  ])("refuses %s", (_, bytes) => {
    expect(() => read(bytes)).toThrow(expect.objectContaining({ code: "carrier_protocol" }));
  });

  it.each([
    ["half a sample", packet(0x10, [1, 2, 3])],
    ["no audio", packet(0x10, [])],
    ["a rate that no session has", packet(0x11, [0, 0])],
    ["a digit that is none", packet(0x03, [0x20])],
    ["an unknown kind", packet(0x42, [1])],
  ])("survives %s", (_, bytes) => {
    expect(read(Buffer.concat([NAMED, bytes, packet(0x10, [1, 0])])).map(({ kind }) => kind)).toEqual([
      "call",
      "odd",
      "media",
    ]);
  });

  it("is over after an error of Asterisk's", () => {
    expect(read(Buffer.concat([NAMED, packet(0xff, [4]), packet(0x10, [1, 0])]))).toEqual([
      { kind: "call", callId: UUID },
      { kind: "stopped", reason: "error 4" },
    ]);
  });

  it("never throws anything else, whatever comes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          read(Buffer.concat([NAMED, bytes]));
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(GatewayError);
        }
      }),
    );
  });
});

describe("the call of a connection", () => {
  it("is known with the last byte of its UUID, whatever follows", () => {
    for (let length = 0; length < NAMED.length; length += 1) {
      expect(audioSocketCall(NAMED.subarray(0, length))).toBeNull();
    }
    expect(audioSocketCall(NAMED)).toEqual({ callId: UUID });
    expect(audioSocketCall(CALL)).toEqual({ callId: UUID });
  });

  it("is refused as soon as the bytes can't name one", () => {
    for (const bytes of [[0x10], [0x00, 0, 0], [0x01, 0, 15], [0x01, 1, 16]]) {
      expect(audioSocketCall(Uint8Array.from(bytes))).toEqual({ callId: null });
    }
    expect(audioSocketCall(Buffer.from("GET / HTTP/1.1"))).toEqual({ callId: null });
  });

  it("is decided by 19 bytes at most", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 19, maxLength: 64 }), (bytes) => {
        expect(audioSocketCall(bytes)).not.toBeNull();
      }),
    );
  });
});

describe("what is sent", () => {
  it("is one packet a frame, in one piece", () => {
    const kind = audioSocketKind("pcm_8000") ?? 0;
    const packets = audioSocketPackets(kind, [new Uint8Array(320).fill(1), new Uint8Array(2).fill(2)]);
    expect(packets).toEqual(Buffer.concat([packet(0x10, new Uint8Array(320).fill(1)), packet(0x10, [2, 2])]));
  });

  it("has a kind for every PCM format but 22,050 Hz, and none for G.711", () => {
    const kinds = (
      ["pcm_8000", "pcm_16000", "pcm_24000", "pcm_32000", "pcm_44100", "pcm_48000"] as const
    ).map(audioSocketKind);
    expect(kinds).toEqual([0x10, 0x12, 0x13, 0x14, 0x15, 0x16]);
    expect(audioSocketKind("pcm_22050")).toBeUndefined();
    expect(audioSocketKind("ulaw_8000")).toBeUndefined();
  });

  it("ends the call with a packet without a payload", () => {
    expect(audioSocketHangUp()).toEqual(Uint8Array.of(0, 0, 0));
  });
});
