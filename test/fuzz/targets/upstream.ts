/** What an upstream answers: a stranger, too, where its address is not the vendor's. */

import { openEncoder } from "../../../src/audio/containers/encode.ts";
import { UNKNOWN_DATA_BYTES, wavHeader } from "../../../src/audio/containers/wav.ts";
import { WavStripper } from "../../../src/audio/containers/wav-stripper.ts";
import { parseUpstreamFormat } from "../../../src/audio/formats.ts";
import { AlignmentReader, timesOf } from "../../../src/timing/alignment-reader.ts";
import { defaultVoice } from "../../../src/upstream/default-voice.ts";
import { JsonLines } from "../../../src/upstream/parse/json-lines.ts";
import { readPlainRecord, readRecord } from "../../../src/upstream/parse/record.ts";
import { ServiceDialect } from "../../../src/upstream/services/service-dialect.ts";
import { SERVICES } from "../../../src/upstream/services/services.ts";
import { readUpstreamsFile } from "../../../src/upstream/services/upstreams-file.ts";
import { parseBaseUrl } from "../../../src/upstream/transport/base-url.ts";
import { KeyFilter } from "../../../src/upstream/transport/key-filter.ts";
import { readRetryAfterMs, refusalError } from "../../../src/upstream/vendors/refusal.ts";
import { cut, linesOf, outcomeOf, requireSame, type Target, textOf, tolerate, whole } from "../target.ts";

/** Of every service: lines of each are tried with all of them. */
const SERVICE_WORDS = [
  ..."type chunk data timestamps word_timestamps words start end done error error_code status_code".split(
    " ",
  ),
  ..."result audioContent timestampInfo wordAlignment wordStartTimeSeconds wordEndTimeSeconds".split(" "),
  ..."audio timestamp time begin text speech.chunk speech.done speech.error speech_marks value".split(" "),
  ..."start_time end_time word timestamps speech.audio.delta speech.audio.done".split(" "),
  ..."audio.delta delta audio.done audio_timestamps graph_chars graph_times timestamps terminated".split(" "),
  ..."Path: turn.start audio.metadata turn.end Metadata Type WordBoundary Data Offset Duration Text".split(
    " ",
  ),
  ..."audio-start audio-chunk audio-stop rate width channels data_length payload_length".split(" "),
  ..."quick brown twenty five data: event: RIFF WAVE null".split(" "),
];
const SERVICE_SEEDS = [
  'event: chunk\ndata: {"type":"chunk","data":"AAAA","done":false}\n\ndata: {"type":"timestamps","word_timestamps":{"words":["The","quick"],"start":[0,0.1],"end":[0.1,0.3]}}\n\ndata: {"type":"done"}\n\n',
  '{"result":{"audioContent":"AAAA","timestampInfo":{"wordAlignment":{"words":["The"],"wordStartTimeSeconds":[0],"wordEndTimeSeconds":[0.2]}}}}\n',
  '{"type":"audio","audio":"AAAA"}\n{"type":"timestamp","timestamp":{"type":"word","text":"The","time":{"begin":0,"end":200}}}\n',
  'event: speech.chunk\ndata: {"audio":"AAAA","speech_marks":[{"type":"word","start":0,"end":3,"start_time":0,"end_time":200,"value":"The"}]}\n\nevent: speech.done\ndata: {"audio_duration_ms":1}\n\n',
  '{"audio":"AAAA","audio_format":"pcm","timestamps":[{"word":"The","start_time":0,"end_time":0.2}]}\n',
  '{"type":"audio-start","data":{"rate":22050,"width":2,"channels":1}}\n{"type":"audio-chunk","data":{"rate":22050,"width":2,"channels":1},"payload_length":4}\nabcd{"type":"audio-stop"}\n',
  '{"type":"chunk","data":"AAAA"}\x1e{"type":"timestamps","word_timestamps":{"words":["The"],"start":[0],"end":[0.2]}}\x1e{"type":"done"}',
  '{"type":"audio.delta","delta":"AAAA","audio_timestamps":{"graph_chars":["T","h","e"," "],"graph_times":[[0,0.1],[0.1,0.2],[0.2,0.3],[0.3,0.3]]}}\x1e{"type":"audio.done"}',
  '{"audio":"AAAA","timestamps":{"characters":["T","h","e"," "],"character_start_times_seconds":[0,0.1],"character_end_times_seconds":[0.1,0.2]}}\x1e{"terminated":true}',
  '\0\x0cPath:audio\r\nabcd\x1ePath:audio.metadata\r\n\r\n{"Metadata":[{"Type":"WordBoundary","Data":{"Offset":1000000,"Duration":2000000,"text":{"Text":"The"}}}]}\x1ePath:turn.end\r\n\r\n{}',
  'data: {"type":"speech.audio.delta","audio":"AAAA"}\n\ndata: {"type":"speech.audio.done"}\n\n',
];

const RECORD = {
  audio_base64: "AAAAAAAA",
  alignment: {
    characters: ["H", "i", "🙂"],
    character_start_times_seconds: [0, 0.1, 0.25],
    character_end_times_seconds: [0.1, 0.25, 1.393],
  },
  normalized_alignment: null,
};
const RECORD_WORDS = [
  "audio_base64",
  "alignment",
  "normalized_alignment",
  "characters",
  "character_start_times_seconds",
  "character_end_times_seconds",
  "voice_segments",
  "null",
  "\\ud83d",
  "\\u0041",
  "1e999",
  "-0",
  "data:",
  "event:",
  "\r\n",
  "=",
];
const RECORD_SEEDS = [
  JSON.stringify(RECORD),
  JSON.stringify({
    ...RECORD,
    voice_segments: [{ voice_id: "v", start_time_seconds: 0, end_time_seconds: 1 }],
  }),
  '{"audio_base64":"//8=","alignment":null}',
];
/** Shorter than the real one, so that inputs come over it. */
const MAX_LINE_BYTES = 4096;

const ndjson: Target = {
  words: RECORD_WORDS,
  seeds: [
    `${RECORD_SEEDS.join("\n")}\n`,
    `event: x\ndata: ${RECORD_SEEDS[0]}\r\n\n:\n`,
    `${RECORD_SEEDS[0]}`,
  ],
  run: (input) => requireSame("cut", recordsOf(whole(input)), recordsOf(cut(input))),
};

function recordsOf(pieces: Iterable<Buffer>): string {
  const records: unknown[] = [];
  const parser = new JsonLines({
    onLine: (bytes, start, end) => {
      const record = readRecord(bytes, { start, end });
      records.push({ ...record, audio: Buffer.from(record.audio).toString("hex") });
    },
    maxLineBytes: MAX_LINE_BYTES,
  });
  const outcome = outcomeOf(() => {
    for (const piece of pieces) parser.push(Buffer.from(piece));
    parser.flush();
  });
  return JSON.stringify([records, outcome]);
}

/** The fast way and JSON.parse have to agree, whatever comes. */
const record: Target = {
  words: RECORD_WORDS,
  seeds: RECORD_SEEDS,
  run: (input) => {
    const range = { start: 0, end: input.length };
    requireSame(
      "fast and plain",
      outcomeOf(() => readable(readRecord(Buffer.from(input), range))),
      outcomeOf(() => readable(readPlainRecord(Buffer.from(input), range))),
    );
    const alignment = tolerate(() => readRecord(Buffer.from(input), range))?.alignment;
    if (alignment) timesOf(new AlignmentReader().read(alignment));
  },
};

function readable(chunk: ReturnType<typeof readRecord>): unknown {
  return { ...chunk, audio: Buffer.from(chunk.audio).toString("hex") };
}

/** Lines: status, retry-after, date, the body. */
const refusal: Target = {
  words:
    "detail status code message type param loc msg voice_not_found quota_exceeded invalid_api_key previous_text body.text secret-text Tue, 24 Nov 2026 15:00:00 GMT".split(
      " ",
    ),
  seeds: [
    '404\n\n\n{"detail":{"status":"voice_not_found","message":"A voice was not found."}}',
    '422\n\n\n{"detail":[{"loc":["body","voice_settings","speed"],"msg":"too large","type":"value_error"}]}',
    '429\n2\n\n{"detail":{"code":"too_many_concurrent_requests","param":"text"}}',
    "503\nTue, 24 Nov 2026 15:00:00 GMT\nTue, 24 Nov 2026 14:59:00 GMT\n<html>",
  ],
  run: (input) => {
    const [status = "", retryAfter = "", date = "", ...body] = linesOf(input);
    const headers = { "retry-after": retryAfter, date };
    readRetryAfterMs(headers);
    const secrets = ["secret-text that was spoken"];
    const error = refusalError({
      status: Number(status) || 400,
      headers,
      body: Buffer.from(body.join("\n")),
      secrets,
    });
    if (error.message.includes("secret-text that was spoken")) throw new Error("a refusal repeats the text");
  },
};

const KEY = "sk_0123456789abcdef";

/** The key is found in an answer, however it was cut; an answer without it goes through as it came. */
const keyFilter: Target = {
  words: [KEY, KEY.slice(0, 9), KEY.slice(9), "sk_sk_"],
  seeds: [`before ${KEY} after`, `${KEY}${KEY}`, KEY.slice(0, 12)],
  run: (input) => {
    const expected = input.includes(KEY) ? "found" : input.toString("latin1");
    requireSame("whole", filtered(whole(input)), expected);
    requireSame("cut", filtered(cut(input)), expected);
  },
};

function filtered(pieces: Iterable<Buffer>): string {
  const filter = new KeyFilter(KEY);
  const passed: Buffer[] = [];
  for (const piece of pieces) {
    const bytes = filter.push(piece);
    if (bytes === null) return "found";
    passed.push(Buffer.from(bytes));
  }
  return Buffer.concat([...passed, filter.end()]).toString("latin1");
}

const baseUrl: Target = {
  words: ["http://", "https://", "@", "?", "#", "[::1]", ":", "//", "%00"],
  seeds: ["https://api.example.com/prefix", "http://user:pass@h/", "http://[::1]:8080"],
  run: (input) => {
    parseBaseUrl(textOf(input));
  },
};

const voices: Target = {
  words: ["voices", "voice_id", "name", "labels", "gender"],
  seeds: [
    '{"voices":[{"voice_id":"a","name":"Ann","labels":{"gender":"female"}}]}',
    '{"voices":[]}',
    "<html>",
  ],
  run: async (input) => {
    const get = async () => ({ status: 200, contentType: "application/json", body: input });
    if ((await defaultVoice({ get }, "")()).length > input.length) throw new Error("no voice of the list");
  },
};

/** A header for every piece of a body, and none: what is samples does not depend on how the body was cut. */
const wavStripper: Target = {
  words: ["RIFF", "WAVE", "fmt ", "data", "LIST", "\xff\xff\xff\xff", "\x10\x00\x00\x00\x01\x00\x01\x00"],
  seeds: [
    Buffer.concat([wavHeader({ sampleRate: 24_000, dataBytes: 4 }), Buffer.from("abcdLIST\x02\0\0\0xx")]),
    Buffer.concat([wavHeader({ sampleRate: 8000, dataBytes: UNKNOWN_DATA_BYTES }), Buffer.from("abcd")]),
    "samples alone",
  ],
  run: (input) => requireSame("cut", strippedOf(whole(input)), strippedOf(cut(input))),
};

function strippedOf(pieces: Iterable<Buffer>): string {
  let samples = "";
  const stripper = new WavStripper({
    plain: { codec: "pcm", sampleRate: 24_000, channels: 1 },
    onSamples: (bytes, { codec, sampleRate, channels }) => {
      const sampled = `${codec} ${sampleRate} ${channels} `;
      for (const byte of bytes) samples += `${sampled}${byte};`;
    },
  });
  const outcome = outcomeOf(() => {
    for (const piece of pieces) stripper.push(Buffer.from(piece));
    stripper.finish();
  });
  return JSON.stringify([samples, outcome]);
}

const SPOKEN = "The quick brown fox, and 25 dogs.";
const SERVICE_NAMES = Object.keys(SERVICES);

/** On a WebSocket a piece is a message, wherever it was cut. */
const MESSAGE_SERVICES = SERVICE_NAMES.filter((name) => SERVICES[name]?.scheme === "ws");
/** Between two messages. */
const SEPARATOR = 0x1e;

function messagesOf(body: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  let from = 0;
  for (let to = body.indexOf(SEPARATOR); to >= 0; to = body.indexOf(SEPARATOR, from)) {
    messages.push(body.subarray(from, to));
    from = to + 1;
  }
  return [...messages, body.subarray(from)];
}

/** The first byte says which service, the rest is its answer. What is refused has none of the text in its message. */
const services: Target = {
  words: SERVICE_WORDS,
  seeds: SERVICE_NAMES.flatMap((_, index) => SERVICE_SEEDS.map((seed) => String.fromCharCode(index) + seed)),
  run: (input) => {
    const name = SERVICE_NAMES[(input[0] ?? 0) % SERVICE_NAMES.length] ?? "";
    const body = input.subarray(1);
    if (MESSAGE_SERVICES.includes(name)) answerOf(name, messagesOf(body));
    else requireSame(`${name} cut`, answerOf(name, whole(body)), answerOf(name, cut(body)));
  },
};

function answerOf(name: string, pieces: Iterable<Buffer>): string {
  const format = parseUpstreamFormat("pcm_24000");
  const adapter = SERVICES[name]?.create({ name, key: "", baseUrl: "", model: "", sampleRate: 24_000 });
  if (format === undefined || adapter === undefined) throw new Error("there is no such service");
  const request = {
    kind: "speech",
    voiceId: "v",
    text: SPOKEN,
    outputFormat: format.name,
    wantsTiming: true,
  } as const;
  const asked = adapter.request(request, { codec: "pcm", sampleRate: 24_000, channels: 1 });
  const encoder = openEncoder(format);
  const dialect = new ServiceDialect({
    ...{ name, key: "", adapter, request, asked, blanked: SPOKEN, ignored: [], format, encoder },
    onOddRate: () => false,
  });
  let [bytes, characters] = [0, ""];
  const outcome = outcomeOf(() => {
    const reader = dialect.body({ "content-type": "application/octet-stream" }, ({ audio, alignment }) => {
      bytes += audio.length;
      characters += alignment?.characters.join("") ?? "";
    });
    for (const piece of pieces) reader.push(Buffer.from(piece));
    reader.end();
  });
  dialect.close();
  const leads = [characters, characters.replace(/^ /, "")];
  if (!leads.some((said) => SPOKEN.startsWith(said))) throw new Error("characters that are not the text's");
  return JSON.stringify([outcome === "upstream_truncated" ? 0 : bytes, characters, outcome]);
}

const upstreamsFile: Target = {
  words: [
    "name",
    "service",
    "url",
    "key-env",
    "key-file",
    "voices",
    "max-open",
    "sample-rate",
    "upstreams",
    ...SERVICE_NAMES,
  ],
  seeds: [
    '[{"name":"cartesia","key-env":"CARTESIA_API_KEY","model":"sonic-3","voices":["a*"],"max-open":3}]',
    '[{"name":"local","service":"openai","url":"http://127.0.0.1:8880","sample-rate":24000}]',
    '{"upstreams":[{"name":"piper","url":"http://127.0.0.1:5000"}],"voices":{"anna":["piper:a","b"]}}',
  ],
  run: (input) => {
    readUpstreamsFile(textOf(input), { env: () => "secret-key-value", file: () => "secret-key-value" });
  },
};

export const UPSTREAM_TARGETS: Readonly<Record<string, Target>> = {
  "upstream-ndjson": ndjson,
  "upstream-record": record,
  "upstream-refusal": refusal,
  "upstream-key-filter": keyFilter,
  "upstream-url": baseUrl,
  "upstream-voices": voices,
  "upstream-wav": wavStripper,
  "upstream-services": services,
  "upstreams-file": upstreamsFile,
};
