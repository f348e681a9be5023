/** What an upstream answers: a stranger, too, where its address is not the vendor's. */
import { AlignmentReader, timesOf } from "../../../src/timing/alignment-reader.ts";
import { defaultVoice } from "../../../src/upstream/default-voice.ts";
import { NdjsonParser } from "../../../src/upstream/parse/ndjson.ts";
import { readPlainRecord, readRecord } from "../../../src/upstream/parse/record.ts";
import { KeyFilter } from "../../../src/upstream/transport/key-filter.ts";
import { parseBaseUrl } from "../../../src/upstream/vendors/base-url.ts";
import { readRetryAfterMs, refusalError } from "../../../src/upstream/vendors/refusal.ts";
import { cut, linesOf, outcomeOf, requireSame, type Target, textOf, tolerate, whole } from "../target.ts";

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
  const parser = new NdjsonParser({
    onRecord: (record) => records.push({ ...record, audio: Buffer.from(record.audio).toString("hex") }),
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

export const UPSTREAM_TARGETS: Readonly<Record<string, Target>> = {
  "upstream-ndjson": ndjson,
  "upstream-record": record,
  "upstream-refusal": refusal,
  "upstream-key-filter": keyFilter,
  "upstream-url": baseUrl,
  "upstream-voices": voices,
};
