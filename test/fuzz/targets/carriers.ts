/** Phone calls: every dialect, jambonz's speech vendor, AudioSocket, RTP, and what says who a carrier is. */
import { parseRtp, RtpSequence, TelephoneEvents } from "../../../src/audio/containers/rtp-reader.ts";
import { AudioSocketReader } from "../../../src/protocol/carrier/audiosocket.ts";
import { readAudioSocketRequest } from "../../../src/protocol/carrier/audiosocket-request.ts";
import {
  CARRIERS,
  type CarrierEvent,
  type CarrierName,
  type Wire,
} from "../../../src/protocol/carrier/carrier.ts";
import { bytesPerMs } from "../../../src/protocol/carrier/carrier-format.ts";
import { DIALECTS } from "../../../src/protocol/carrier/index.ts";
import {
  endsSentence,
  jambonzAudio,
  jointOf,
  parseJambonzAddress,
  parseJambonzMessage,
  parseJambonzTts,
  speakableSsml,
  upstreamLanguage,
} from "../../../src/protocol/carrier/jambonz-tts.ts";
import { readRtpRequest } from "../../../src/protocol/carrier/rtp-request.ts";
import { sniffCarrier } from "../../../src/protocol/carrier/sniff.ts";
import { isTwilioSignature, twilioSignature } from "../../../src/protocol/carrier/twilio-signature.ts";
import { CarrierAuth } from "../../../src/server/carriers/carrier-auth.ts";
import { readCarrierRules } from "../../../src/server/carriers/carrier-rules.ts";
import { PeerRule, readPeerList } from "../../../src/server/carriers/rtp-networks.ts";
import { reachablePeer, readPortRange } from "../../../src/server/carriers/rtp-routes.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { OPEN_DOOR } from "../../helpers/open-door.ts";
import { recordedCall } from "../recorded-call.ts";
import { cut, linesOf, outcomeOf, requireSame, type Target, textOf, tolerate, whole } from "../target.ts";

/** A binary message is one line that begins with it. */
const BINARY_MARK = "\u0000";
const WORDS = [
  ..."event type connected start media mark dtmf stop error streamSid stream_id streamId stream_sid callSid".split(
    " ",
  ),
  ..."mediaFormat media_format encoding sampleRate sample_rate payload chunk track name digit duration data".split(
    " ",
  ),
  ..."playedStream clearedAudio extra_headers websocket:connected websocket:dtmf websocket:notify".split(" "),
  ..."websocket:cleared content-type MEDIA_START MEDIA_XOFF MEDIA_XON MEDIA_MARK_PROCESSED DTMF_END".split(
    " ",
  ),
  ..."correlation_id channel_variables format PCMU inbound optimal_frame_size ptime customParameters".split(
    " ",
  ),
  ..."audio/x-mulaw audio/l16;rate=16000 ulaw m1 5 160 8000 AAAA __proto__ sequenceNumber".split(" "),
];

/** A call in lines. */
function callOf(carrier: CarrierName): string {
  return recordedCall(carrier)
    .map((wire) => (typeof wire === "string" ? wire : BINARY_MARK + Buffer.from(wire).toString("latin1")))
    .join("\n");
}

function wiresOf(input: Buffer): Wire[] {
  return linesOf(input).map((line) =>
    line.startsWith(BINARY_MARK) ? Buffer.from(line.slice(1), "latin1") : line,
  );
}

function dialectTarget(carrier: CarrierName): Target {
  return {
    words: WORDS,
    seeds: [callOf(carrier)],
    run: (input) => {
      const codec = DIALECTS[carrier].open({ query: new Map(), headers: new Map() });
      let frame: Uint8Array | null = null;
      tolerate(() => {
        for (const wire of wiresOf(input)) {
          for (const event of codec.read(wire)) {
            requireSound(event);
            if (event.kind === "started") {
              frame = new Uint8Array(Math.ceil(bytesPerMs(event.call.format) || 1) * 20);
              codec.mark("m1");
            }
          }
          if (frame !== null) codec.audio([frame]);
        }
      });
      codec.flush();
      codec.clear();
      codec.hangUp();
    },
  };
}

/** What every event keeps to, whatever its carrier sent. */
function requireSound(event: CarrierEvent): void {
  if (event.kind === "odd" && event.what.length > 120) throw new Error("an odd event repeats what was sent");
  if (event.kind === "dtmf" && !/^[0-9A-D*#]$/.test(event.digit)) throw new Error("a key that no phone has");
  if (event.kind === "played" && event.name !== "m1") throw new Error("an unknown mark");
}

const sniff: Target = {
  words: WORDS,
  seeds: CARRIERS.map((carrier) => `\n${callOf(carrier)}`),
  run: (input) => {
    const [subprotocol = "", ...texts] = linesOf(input);
    sniffCarrier(subprotocol, texts);
  },
};

const jambonzVendor: Target = {
  words: [
    ..."type text ssml voice language stream flush stop clear keepalive sampleRate= voice= rate= audio/l16".split(
      " ",
    ),
    ..."audio/wav <speak> </speak> <p> <break time='1s'/> <phoneme <!-- --> <? ?> &amp; &#x41; &#55296; ; ,".split(
      " ",
    ),
  ],
  seeds: [
    '{"type":"ssml","text":"<speak><p>A &amp; b</p><break time=\\"1s\\"/></speak>","voice":"v","language":"en-US"}',
    '{"type":"stream","text":"Hello."}',
    "voice=v&language=en-US&sampleRate=16000",
    "audio/l16;rate=16000, audio/wav;q=0.5",
    "<speak>Hi <!-- no --> there <?x y?> &#x263a;</speak>",
  ],
  run: (input) => {
    const text = textOf(input);
    tolerate(() => parseJambonzTts(text));
    tolerate(() => parseJambonzMessage(text));
    tolerate(() => parseJambonzAddress(text));
    tolerate(() => jambonzAudio(text));
    speakableSsml(text);
    endsSentence(text);
    jointOf(text, text);
    upstreamLanguage(text, "eleven_flash_v2_5");
  },
};

const audioSocket: Target = {
  seeds: [
    Buffer.concat([
      Buffer.from([1, 0, 16]),
      Buffer.alloc(16, 7),
      Buffer.from([0x10, 0, 4, 1, 2, 3, 4, 3, 0, 1, 0x35, 0x12, 0, 2, 0, 0, 0, 0, 0]),
    ]),
    Buffer.concat([Buffer.from([1, 0, 16]), Buffer.alloc(16, 9), Buffer.from([0xff, 0, 1, 4])]),
  ],
  run: (input) => requireSame("cut", audioSocketEvents(whole(input)), audioSocketEvents(cut(input))),
};

function audioSocketEvents(pieces: Iterable<Buffer>): string {
  const events: unknown[] = [];
  const reader = new AudioSocketReader((event) => {
    events.push(
      event.kind === "media" ? { ...event, audio: Buffer.from(event.audio).toString("hex") } : event,
    );
  });
  const outcome = outcomeOf(() => {
    for (const piece of pieces) reader.push(piece);
  });
  return JSON.stringify([events, outcome]);
}

/** Packets, each behind a byte with its length. */
const rtp: Target = {
  seeds: [
    Buffer.from([16, 0x80, 0, 0, 1, 0, 0, 0, 0xa0, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([16, 0x80, 101, 0, 2, 0, 0, 1, 0x40, 1, 2, 3, 4, 5, 0x8a, 0x03, 0x20]),
    Buffer.from([20, 0xb1, 0, 0, 3, 0, 0, 1, 0x40, 1, 2, 3, 4, 9, 9, 9, 9, 0xbe, 0xde, 0, 0]),
  ],
  run: (input) => {
    const sequence = new RtpSequence();
    const keys = new TelephoneEvents();
    for (let at = 0; at < input.length; ) {
      const length = input[at] ?? 0;
      const packet = parseRtp(input.subarray(at + 1, at + 1 + length));
      at += 1 + length;
      if (packet === null) continue;
      const verdict = sequence.note(packet);
      if (verdict.kind === "fresh" && verdict.missing > 0x7fff) throw new Error("too many are missing");
      keys.push(packet);
    }
  },
};

/** Lines: the body of a request for a call, the setting rtp-peers, rtp-ports, and an address. */
const rtpSettings: Target = {
  words:
    "session remote listen_only format ulaw_8000 dtmf_payload_type text voice_id private none 10.0.0.0/8 [2001:db8::1]:4000 ::ffff:127.0.0.1 192.0.2.1:4000 /33 fe80::1%eth0 10000-10100".split(
      " ",
    ),
  seeds: [
    '{"session":"s","remote":"192.0.2.1:4000","format":"alaw_8000"}\nprivate, 10.0.0.0/8\n10000-10100\n192.0.2.1',
    '{"session":"s","remote":"[2001:db8::1]:4000","listen_only":true}\nnone\n\n::ffff:10.0.0.1',
    '{"session":"s","dtmf_payload_type":101,"text":"Hi"}\n2001:db8::/32\n1-2\nfe80::1',
  ],
  run: (input) => {
    const [body = "", peers = "", ports = "", address = ""] = linesOf(input);
    const peer = tolerate(() => readRtpRequest(body))?.peer ?? null;
    const list = tolerate(() => readPeerList(peers));
    tolerate(() => readPortRange(ports));
    for (const host of ["127.0.0.1", "::"]) {
      if (peer === null || list === undefined) continue;
      const rule = new PeerRule({ list, host, own: [] });
      tolerate(() => rule.refusal(reachablePeer(peer, host).address));
    }
    if (list !== undefined) new PeerRule({ list, host: "0.0.0.0", own: [] }).refusal(address);
  },
};

const audioSocketRequest: Target = {
  words: "session text voice_id null __proto__".split(" "),
  seeds: ['{"session":"s","text":"Hi","voice_id":"v"}', ""],
  run: (input) => {
    if (readAudioSocketRequest(textOf(input)).session.length > 64)
      throw new Error("a session's name is too long");
  },
};

/** Lines: host, path, query, authorization, signature. */
const carrierTokens: Target = {
  words: "Bearer Basic token= wss:// https:// :443 / ? # [::1] secret dTpzZWNyZXQ=".split(" "),
  seeds: [
    "example.com\n/carrier/twilio\n\n\nAAAA",
    "https://example.com:443/\n/carrier\ntoken=secret\nBearer secret\n",
    "h\n/carrier/vonage\n\nBasic dTpzZWNyZXQ=\n",
  ],
  run: (input) => {
    const [host = "", path = "", query = "", authorization = "", signature = ""] = linesOf(input);
    const headers = new Map([
      ["host", host],
      ["authorization", authorization],
      ["x-twilio-signature", signature],
    ]);
    for (const carrier of ["twilio", "vonage", null] as const) {
      for (const publicUrl of ["", "https://example.com//"]) {
        const twilioAuthToken = publicUrl === "" ? "" : "t";
        const rules = readCarrierRules({ carriers: "", twilioAuthToken, carrierToken: "secret", publicUrl });
        const auth = new CarrierAuth({ rules, door: OPEN_DOOR, clock: new FakeClock() });
        const request = { carrier, path, query, headers, address: "203.0.113.5", redeem: () => undefined };
        tolerate(() => auth.admit(request));
      }
    }
    const url = `wss://${host}${path}`;
    const own = twilioSignature("t", url);
    if (!isTwilioSignature({ authToken: "t", url, signature: own }))
      throw new Error("its own signature is none");
  },
};

export const CARRIER_TARGETS: Readonly<Record<string, Target>> = {
  ...Object.fromEntries(CARRIERS.map((carrier) => [`carrier-${carrier}`, dialectTarget(carrier)])),
  "carrier-sniff": sniff,
  "carrier-tokens": carrierTokens,
  "jambonz-tts": jambonzVendor,
  audiosocket: audioSocket,
  "audiosocket-requests": audioSocketRequest,
  "rtp-packets": rtp,
  "rtp-settings": rtpSettings,
};
