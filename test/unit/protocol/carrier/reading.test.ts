/** What a codec makes of messages that are wrong, odd or unusual. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import {
  CARRIERS,
  type CarrierCodec,
  type CarrierEvent,
  type CarrierName,
  type Wire,
} from "../../../../src/protocol/carrier/carrier.ts";
import { MAX_MESSAGE_LENGTH } from "../../../../src/protocol/carrier/fields.ts";
import { DIALECTS } from "../../../../src/protocol/carrier/index.ts";
import { WIRINGS, WiredCall } from "./wired-call.ts";

const fresh = (carrier: CarrierName, query: Readonly<Record<string, string>> = {}): CarrierCodec =>
  DIALECTS[carrier].open({
    query: new Map(Object.entries(query)),
    headers: new Map([["sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="]]),
  });

/** The message that the error has: nothing where none was thrown. */
function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof GatewayError && error.code === "carrier_protocol") return error.message;
    throw error;
  }
  return "";
}

const startedCall = (events: readonly CarrierEvent[]) => {
  const [event] = events;
  if (event?.kind !== "started") throw new Error("The call did not start");
  return event.call;
};

const TWILIO_MEDIA = (chunk: number | string, payload = "/////w==") =>
  JSON.stringify({ event: "media", media: { track: "inbound", chunk: String(chunk), payload } });
const twilioStart = (start: Record<string, unknown>) => JSON.stringify({ event: "start", start });
const MULAW = { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 };

describe.each(WIRINGS)("%s", (_, carrier, options) => {
  it("refuses a second start", () => {
    const call = new WiredCall(carrier, options);
    const start = call.peer.opening().at(-1) ?? "";
    expect(refusal(() => call.codec.read(start))).toMatch(/second/);
  });

  it("refuses media and keys before start", () => {
    const { peer } = new WiredCall(carrier, options);
    expect(refusal(() => fresh(carrier).read(peer.media(new Uint8Array(320))))).not.toBe("");
    expect(refusal(() => fresh(carrier).read(peer.digit("1")))).not.toBe("");
  });

  it("refuses what is too large, before and after start", () => {
    const call = new WiredCall(carrier, options);
    for (const codec of [fresh(carrier), call.codec]) {
      expect(refusal(() => codec.read(" ".repeat(MAX_MESSAGE_LENGTH + 1)))).toMatch(/1048576|1048577/);
    }
    if (["vonage", "jambonz", "asterisk"].includes(carrier)) {
      expect(refusal(() => call.codec.read(new Uint8Array(MAX_MESSAGE_LENGTH + 1)))).toMatch(/1048577/);
    }
  });

  it("takes an unknown event for odd, and does not repeat what could be anybody's words", () => {
    const call = new WiredCall(carrier, options);
    const message =
      carrier === "jambonz" ? { type: "my number is 555" } : { event: "my number is 555", payload: "555" };
    call.deliver(JSON.stringify(message));
    expect(call.odd).toHaveLength(1);
    expect(call.odd.join()).not.toMatch(/555/);
    expect(call.violations).toEqual([]);
  });

  it("takes a key that phones do not have for odd, and does not repeat it", () => {
    const call = new WiredCall(carrier, options);
    call.deliver(call.peer.digit("Q"));
    expect(call.odd).toEqual(["a key that phones do not have"]);
    call.deliver(call.peer.digit("d"));
    expect(call.events.at(-1)).toMatchObject({ kind: "dtmf", digit: "D" });
  });

  it("asks for no more than 256 marks at once, and refuses names that could be anything", () => {
    const call = new WiredCall(carrier, options);
    call.codec.audio([new Uint8Array(call.frameBytes)]);
    call.codec.flush();
    const asked = Array.from({ length: 300 }, (__, i) => call.codec.mark(`m${i}`)).filter(
      (mark) => mark !== null,
    );
    expect(asked).toHaveLength(carrier === "jambonz" ? 30 : 256);
    expect(() => call.codec.mark('"}')).toThrow(RangeError);
    expect(() => call.codec.mark("x".repeat(33))).toThrow(RangeError);
    // A clear forgets them all: there is room again.
    call.codec.clear();
    expect(call.codec.mark("n1")).not.toBeNull();
  });

  it("clears nothing and hangs nothing up that has not started", () => {
    expect(fresh(carrier).clear()).toEqual([]);
    expect(fresh(carrier).flush()).toEqual([]);
  });
});

describe.each(CARRIERS)("%s: what is no message of its", (carrier) => {
  const bad: readonly [string, Wire][] = [
    ["no JSON", "{"],
    ["an array", "[1]"],
    ["null", "null"],
    ["no event", "{}"],
    ["an event that is a number", '{"event":5}'],
    ["nothing", ""],
  ];
  it.each(bad)("%s", (_, message) => {
    expect(refusal(() => fresh(carrier).read(message))).toMatch(new RegExp(`^Cannot read ${carrier}`));
  });
});

describe("the JSON carriers", () => {
  it("name the field that is missing or wrong, without its value", () => {
    expect(refusal(() => fresh("twilio").read('{"event":"start"}'))).toMatch(/start is missing/);
    expect(refusal(() => fresh("twilio").read(twilioStart({ streamSid: 7, mediaFormat: MULAW })))).toMatch(
      /start\.streamSid is not a string/,
    );
    expect(
      refusal(() => fresh("twilio").read(twilioStart({ streamSid: "s", mediaFormat: { encoding: "x" } }))),
    ).toMatch(/start\.mediaFormat\.sampleRate is missing/);
    const long = twilioStart({ streamSid: "s".repeat(600), mediaFormat: MULAW });
    expect(refusal(() => fresh("twilio").read(long))).toMatch(/more than 512/);
  });

  it("refuse a payload that is no base64, and half a sample of what has to be turned round", () => {
    const call = new WiredCall("twilio");
    expect(refusal(() => call.codec.read(TWILIO_MEDIA(1, "a b!c")))).toMatch(/base64/);
    const codec = fresh("telnyx", { byte_order: "be" });
    codec.read(telnyxStart({ encoding: "L16", sample_rate: 16000, channels: 1 }));
    expect(refusal(() => codec.read(TWILIO_MEDIA(1, "AAAA")))).toMatch(/half a sample/);
  });

  it("refuse binary messages", () => {
    expect(refusal(() => new WiredCall("twilio").codec.read(new Uint8Array(4)))).toMatch(/binary/);
  });

  it("lose no voice, whatever numbers it has", () => {
    const call = new WiredCall("twilio");
    for (const chunk of [1, 2, 5, 6, 6, 6, 7]) call.deliver(TWILIO_MEDIA(chunk));
    expect(call.events.filter((event) => event.kind === "media")).toHaveLength(7);
  });

  it("take messages of another stream and after stop for odd", () => {
    const call = new WiredCall("twilio");
    call.deliver('{"event":"dtmf","streamSid":"MZother","dtmf":{"digit":"1"}}');
    for (const message of call.peer.closing()) call.deliver(message);
    call.deliver(TWILIO_MEDIA(1));
    expect(call.odd).toEqual(["a message of another stream", "a message after stop"]);
    expect(call.events.at(-2)).toEqual({ kind: "stopped" });
  });

  it("do not hear the other side of the call", () => {
    const call = new WiredCall("twilio");
    call.deliver('{"event":"media","media":{"track":"outbound","chunk":"1","payload":"AAAA"}}');
    expect(call.events.filter((event) => event.kind === "media")).toEqual([]);
  });

  it("hand over at most 64 parameters, each of at most 4096 characters, and no prototype", () => {
    const parameters = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`p${i}`, "v"]));
    const message = twilioStart({
      streamSid: "s",
      mediaFormat: MULAW,
      customParameters: { long: "x".repeat(5000), number: 5, object: {}, ...parameters },
    }).replace('"number"', '"__proto__"');
    const read = startedCall(fresh("twilio").read(message)).parameters;
    expect(Object.keys(read)).toHaveLength(64);
    expect(Object.keys(read)).not.toContain("long");
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    expect(Object.getOwnPropertyDescriptor(read, "__proto__")?.value).toBe("5");
  });

  it("refuse formats that are not known, with the call's own words left out", () => {
    const message = twilioStart({ streamSid: "s", mediaFormat: { ...MULAW, encoding: "audio/x-secret" } });
    expect(refusal(() => fresh("twilio").read(message))).toMatch(/not a format that is known/);
    expect(refusal(() => fresh("twilio").read(message))).not.toMatch(/secret/);
  });
});

const telnyxStart = (media_format: Record<string, unknown>, custom_parameters?: Record<string, string>) =>
  JSON.stringify({
    event: "start",
    stream_id: "s1",
    start: { call_control_id: "c1", media_format, ...(custom_parameters && { custom_parameters }) },
  });
const PCMU = { encoding: "PCMU", sample_rate: 8000, channels: 1 };

describe("telnyx", () => {
  it("reads what it is to be sent from the query, else from the parameters, else it is PCMU", () => {
    const format = (query: Record<string, string>, parameters?: Record<string, string>) =>
      startedCall(fresh("telnyx", query).read(telnyxStart(PCMU, parameters))).format;
    expect(format({})).toBe("ulaw_8000");
    expect(format({ codec: "PCMA" })).toBe("alaw_8000");
    expect(format({ codec: "L16" })).toBe("pcm_16000");
    expect(format({ codec: "L16", sample_rate: "24000" })).toBe("pcm_24000");
    expect(format({}, { codec: "L16", sample_rate: "8000" })).toBe("pcm_8000");
    expect(format({ codec: "OPUS" })).toBe("opus_48000");
    expect(refusal(() => format({ codec: "G722" }))).toMatch(/G722/);
    expect(refusal(() => format({ codec: "AMR-WB" }))).toMatch(/AMR-WB/);
    expect(refusal(() => format({ codec: "L16", sample_rate: "7000" }))).toMatch(/sample_rate/);
  });

  it("sends an Opus packet a message", () => {
    const codec = fresh("telnyx", { codec: "OPUS" });
    codec.read(telnyxStart(PCMU));
    const packets = [Buffer.from([1, 2, 3]), Buffer.from([4])];
    expect(codec.audio(packets)).toEqual(
      packets.map((packet) => `{"event":"media","media":{"payload":"${packet.toString("base64")}"}}`),
    );
    expect(codec.mark("m1")).toBe('{"event":"mark","mark":{"name":"m1"}}');
  });

  it("hears no caller whose codec is not decoded here", () => {
    const codec = fresh("telnyx");
    const call = startedCall(codec.read(telnyxStart({ encoding: "G722", sample_rate: 8000, channels: 1 })));
    expect(call.callerFormat).toBeNull();
    expect(codec.read(TWILIO_MEDIA(1))).toEqual([]);
  });

  it("turns 16-bit samples round where byte_order is be, and leaves mu-law alone", () => {
    const codec = fresh("telnyx", { codec: "L16", byte_order: "be" });
    codec.read(telnyxStart({ encoding: "L16", sample_rate: 16000, channels: 1 }));
    const frame = Buffer.from([1, 2, 3, 4]);
    expect(codec.audio([frame])).toEqual([`{"event":"media","media":{"payload":"AgEEAw=="}}`]);
    expect(frame).toEqual(Buffer.from([1, 2, 3, 4]));
    const [event] = codec.read(TWILIO_MEDIA(1, "AgEEAw=="));
    expect(event?.kind === "media" && Buffer.from(event.audio)).toEqual(frame);
    const mulaw = fresh("telnyx", { byte_order: "be" });
    mulaw.read(telnyxStart(PCMU));
    expect(mulaw.audio([frame])).toEqual([`{"event":"media","media":{"payload":"AQIDBA=="}}`]);
  });
});

describe("the binary carriers", () => {
  it("vonage: a call without an id is its connection", () => {
    const call = startedCall(
      fresh("vonage").read('{"event":"websocket:connected","content-type":"audio/l16;rate=8000"}'),
    );
    expect(call.callId).toBe(Buffer.from("the sample nonce").toString("hex"));
    expect(call.format).toBe("pcm_8000");
    const other = '{"event":"websocket:connected","content-type":"audio/opus"}';
    expect(refusal(() => fresh("vonage").read(other))).toMatch(/content-type/);
  });

  it("vonage: a notify of somebody else's is odd", () => {
    const call = new WiredCall("vonage");
    call.deliver('{"event":"websocket:notify","payload":{"customKey":"x"}}');
    expect(call.odd).toEqual(["a mark that was not asked for"]);
  });

  it("jambonz: the rate to be sent is the query's, the metadata's or the caller's; stereo is not heard", () => {
    const start = (more: object, query = {}) =>
      startedCall(fresh("jambonz", query).read(JSON.stringify({ callSid: "c", sampleRate: 8000, ...more })));
    expect(start({}).format).toBe("pcm_8000");
    expect(start({ metadata: { sample_rate: "24000" } }).format).toBe("pcm_24000");
    expect(start({ sample_rate: 16000 }, { sample_rate: "48000" }).format).toBe("pcm_48000");
    expect(start({ mixType: "stereo" }).callerFormat).toBeNull();
    expect(refusal(() => start({ sampleRate: 64000 }))).toMatch(/sample_rate/);
  });

  it("jambonz: what has dried up after its last mark is completed to what it waits for", () => {
    const call = new WiredCall("jambonz");
    const frame = new Uint8Array(call.frameBytes).fill(1);
    call.audio([frame, frame, frame, frame, frame]);
    call.mark("m1");
    call.clock.advance(500);
    expect(call.played).toEqual(["m1"]);
    call.audio([frame]);
    call.flush();
    call.clock.advance(500);
    // 5 and 1 frames, and three of silence that let the sixth go.
    expect(call.player.heard()).toHaveLength(9 * call.frameBytes);
  });

  it("asterisk: refuses passthrough codecs and frames that are not the format's", () => {
    const start = (format: string, bytes: number, ptime = 20) =>
      refusal(() =>
        fresh("asterisk").read(
          `MEDIA_START channel_id:1 format:${format} optimal_frame_size:${bytes} ptime:${ptime}`,
        ),
      );
    expect(start("opus", 0)).toMatch(/not one of ulaw/);
    expect(start("ulaw", 240)).toMatch(/optimal_frame_size/);
    expect(start("ulaw", 0, 0)).toMatch(/optimal_frame_size/);
    expect(start("ulaw", 240, 30)).toBe("");
    expect(refusal(() => fresh("asterisk").read("MEDIA_START format:ulaw optimal_frame_size:160"))).toMatch(
      /channel_id/,
    );
    expect(refusal(() => fresh("asterisk").read("hello there"))).toMatch(/no event/);
  });

  it("asterisk: bundles frames into messages of at most 19,200 bytes", () => {
    const call = new WiredCall("asterisk", { call: { format: "pcm_48000" } });
    const frames = Array.from({ length: 25 }, () => new Uint8Array(1920));
    expect(call.codec.audio(frames).map((message) => message.length)).toEqual([19_200, 19_200, 9_600]);
  });
});
