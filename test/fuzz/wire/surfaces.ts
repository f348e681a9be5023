/** Every socket that strangers reach: where it is, and good conversations for it. */
import { CARRIERS, type CarrierName } from "../../../src/protocol/carrier/carrier.ts";
import { readCorpus } from "../corpus.ts";
import { recordedCall } from "../recorded-call.ts";
import { TARGETS } from "../targets.ts";
import { type Message, textMessage } from "./conversation-mutator.ts";

export const VOICE = "tone-b";
/** One call of so many is greeted: speech costs more than all else about a call. */
const GREETED_EVERY = 8;

interface Shared {
  /** Words of its format. */
  readonly words: readonly string[];
  /** Messages that reach much of its parser; parts of them get into the conversations. */
  readonly others: readonly Message[];
  /** Of connection `index`, unlike those of connections beside it where it names something. */
  conversation(index: number): readonly Message[];
}

export interface WebSocketSurface extends Shared {
  readonly transport: "websocket";
  path(index: number): string;
  readonly subprotocol?: string;
}

export interface StreamSurface extends Shared {
  /** `udp`: each message is a datagram to the port of a call. */
  readonly transport: "tcp" | "udp";
  /** For `tcp`: which of the gateway's ports. */
  readonly port: "audiosocket" | "wyoming" | "rtp";
}

export type Surface = WebSocketSurface | StreamSurface;

/** `folder`: test/fuzz. */
export function surfacesOf(folder: string): Readonly<Record<string, Surface>> {
  const inputsOf = (name: string): readonly Buffer[] => {
    const target = TARGETS[name];
    if (target === undefined) throw new Error(`No target "${name}"`);
    return readCorpus(`${folder}/corpus/${name}`, target);
  };
  const asText = (bytes: Buffer): Message => ({ isText: true, bytes });
  const asBytes = (bytes: Buffer): Message => ({ isText: false, bytes });
  const wordsOf = (name: string): readonly string[] => TARGETS[name]?.words ?? [];

  const live: WebSocketSurface = {
    transport: "websocket",
    words: wordsOf("native-commands"),
    others: inputsOf("native-commands").map(asText),
    path: (index) => `/live/w${index % 500}?${LIVE_QUERIES[index % LIVE_QUERIES.length]}`,
    conversation: () => LIVE_CONVERSATION,
  };
  const vendor = (path: string, target: string, texts: readonly string[]): WebSocketSurface => ({
    transport: "websocket",
    words: wordsOf(target),
    others: inputsOf(target).map(asText),
    path: () => path,
    conversation: () => texts.map(textMessage),
  });
  const carrier = (name: CarrierName): WebSocketSurface => ({
    transport: "websocket",
    words: wordsOf(`carrier-${name}`),
    others: inputsOf(`carrier-${name}`).flatMap(linesIn),
    path: (index) =>
      `/carrier${index % 4 === 0 ? "" : `/${name}`}?session=c${index % 500}${index % GREETED_EVERY === 1 ? "&text=Hello" : ""}`,
    conversation: (index) =>
      recordedCall(name, String(index)).map((wire) =>
        typeof wire === "string" ? textMessage(wire) : asBytes(Buffer.from(wire)),
      ),
    ...(SUBPROTOCOLS[name] === undefined ? {} : { subprotocol: SUBPROTOCOLS[name] }),
  });
  const speech = `/v1/text-to-speech/${VOICE}`;
  const multi = "multi-stream-input?output_format=pcm_16000";
  return {
    live,
    "vendor-stream-input": vendor(`${speech}/stream-input`, "vendor-speech-messages", SPEECH),
    "vendor-multi-stream-input": vendor(`${speech}/${multi}`, "vendor-speech-messages", CONTEXTS),
    "vendor-dialogue": vendor("/v1/text-to-dialogue/stream-input", "vendor-dialogue-messages", DIALOGUE),
    "vendor-dialogue-multi": vendor(
      `/v1/text-to-dialogue/${multi}`,
      "vendor-dialogue-messages",
      DIALOGUE_CONTEXTS,
    ),
    ...Object.fromEntries(CARRIERS.map((name) => [`carrier-${name}`, carrier(name)])),
    "jambonz-tts": vendor(`/carrier/jambonz/tts?voice=${VOICE}&sampleRate=16000`, "jambonz-tts", JAMBONZ),
    audiosocket: {
      transport: "tcp",
      port: "audiosocket",
      words: [],
      others: inputsOf("audiosocket").map(asBytes),
      conversation: (index) => audioSocketCall(index).map(asBytes),
    },
    rtp: {
      transport: "udp",
      port: "rtp",
      words: [],
      others: inputsOf("rtp-packets").map(asBytes),
      conversation: (index) => rtpPackets(index).map(asBytes),
    },
    wyoming: {
      transport: "tcp",
      port: "wyoming",
      words: wordsOf("wyoming-frames"),
      others: inputsOf("wyoming-frames").map(asBytes),
      conversation: () => WYOMING.map((line) => asBytes(Buffer.from(`${line}\n`))),
    },
  };
}

/** A binary message of a carrier's corpus is a line that begins with NUL. */
function linesIn(input: Buffer): Message[] {
  return input
    .toString("utf8")
    .split("\n")
    .map((line) =>
      line.startsWith("\u0000")
        ? { isText: false, bytes: Buffer.from(line.slice(1), "latin1") }
        : textMessage(line),
    );
}

const SUBPROTOCOLS: Partial<Record<CarrierName, string>> = {
  jambonz: "audio.jambonz.org",
  asterisk: "media",
};

/** Who listens alone comes to the session of the speaker before: some find it open. */
const LIVE_QUERIES = [
  "format=ulaw_8000&events=words,marks,cues&pace=burst&lead_ms=0",
  "format=none",
  "format=opus_48000&events=words,cues",
  "role=speaker&format=none&offsets=utf16",
  "format=pcm_16000&framing=rtp&frame_ms=40",
];
const LIVE_CONVERSATION: readonly Message[] = [
  { type: "ping", id: "1" },
  { type: "speak", text: "One and two.", utterance_id: "a" },
  { type: "text", text: "Tokens ", utterance_id: "b" },
  { type: "text", text: "come. ", utterance_id: "b" },
  { type: "end", utterance_id: "b" },
  { type: "mark", name: "m" },
  { type: "configure", format: "pcm_16000", events: ["words"] },
  { type: "play", sound: { kind: "tone", hertz: [440], on_ms: 20, off_ms: 20, ms: 80 } },
  { type: "prepare", text: "Ready.", prepared_id: "p" },
  { type: "played", at_ms: 10 },
  { type: "interrupt" },
  { type: "resume" },
  { type: "cancel", queued: "all" },
].map((command) => textMessage(JSON.stringify(command)));

const SPEECH = [
  '{"text":" ","voice_settings":{"stability":0.5,"similarity_boost":0.8},"generation_config":{"chunk_length_schedule":[50]}}',
  '{"text":"Hello there. ","try_trigger_generation":true}',
  '{"text":"And more of it, ","flush":true}',
  '{"text":""}',
];
const CONTEXTS = [
  '{"text":" ","context_id":"a"}',
  '{"text":"Hello there. ","context_id":"a"}',
  '{"text":"Beside it. ","context_id":"b","flush":true}',
  '{"context_id":"a","flush":true}',
  '{"context_id":"b","close_context":true}',
  '{"close_socket":true}',
];
const DIALOGUE = [
  `{"voices":["${VOICE}"]}`,
  `{"inputs":[{"text":"Hello. ","voice_id":"${VOICE}"},{"text":"You too. ","voice_id":"${VOICE}","new_turn":true}]}`,
  '{"flush":true,"inputs":[]}',
  '{"close_socket":true}',
];
const DIALOGUE_CONTEXTS = DIALOGUE.map((line) => line.replace("{", '{"context_id":"d",'));
const JAMBONZ = [
  '{"type":"stream","text":"Hello there. "}',
  '{"type":"stream","text":"And more."}',
  '{"type":"flush"}',
  '{"type":"keepalive"}',
  '{"type":"clear"}',
  '{"type":"stop"}',
];
const WYOMING = [
  '{"type":"describe"}',
  `{"type":"synthesize","data":{"text":"Hello there.","voice":{"name":"${VOICE}"}}}`,
  '{"type":"synthesize-start","data":{}}',
  '{"type":"synthesize-chunk","data":{"text":"Pieces of it. "}}',
  '{"type":"synthesize-stop"}',
];

function audioSocketCall(index: number): Buffer[] {
  const uuid = Buffer.alloc(16, 0x41);
  uuid.writeUInt32BE(index, 0);
  const voice = Buffer.alloc(320, 3);
  return [
    Buffer.concat([Buffer.from([1, 0, 16]), uuid]),
    Buffer.concat([Buffer.from([0x10, 1, 0x40]), voice]),
    Buffer.from([3, 0, 1, 0x35]),
    Buffer.concat([Buffer.from([0x10, 1, 0x40]), voice]),
    Buffer.from([0, 0, 0]),
  ];
}

function rtpPackets(index: number): Buffer[] {
  return Array.from({ length: 10 }, (_, at) => {
    const head = Buffer.alloc(12);
    head[0] = 0x80;
    head[1] = at % 5 === 4 ? 101 : 0;
    head.writeUInt16BE((index * 10 + at) & 0xffff, 2);
    head.writeUInt32BE(((index * 10 + at) * 160) >>> 0, 4);
    head.writeUInt32BE(7, 8);
    return Buffer.concat([head, at % 5 === 4 ? Buffer.from([5, 0x8a, 3, 0x20]) : Buffer.alloc(160, 0x55)]);
  });
}
