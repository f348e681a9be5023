/** The native protocol, the vendor's sockets, the OpenAI shape, and the queries of all addresses. */

import { GatewayError } from "../../../src/errors.ts";
import { parseCommand } from "../../../src/protocol/commands.ts";
import { parseDialogueMessage } from "../../../src/protocol/elevenlabs/dialogue-messages.ts";
import { faultOf } from "../../../src/protocol/elevenlabs/socket-faults.ts";
import { maxVoices, parseSocketSettings } from "../../../src/protocol/elevenlabs/socket-settings.ts";
import { changedOption, parseSpeechMessage } from "../../../src/protocol/elevenlabs/speech-messages.ts";
import { errorBody } from "../../../src/protocol/events.ts";
import { openAiError, parseOpenAiSpeech, parseVoiceList, voiceOf } from "../../../src/protocol/openai.ts";
import { WyomingReader, wyomingFrame } from "../../../src/protocol/wyoming.ts";
import { parseEventsRequest, parseFileRequest } from "../../../src/server/captions/captions-request.ts";
import { parseAudioRequest } from "../../../src/server/players/audio-request.ts";
import { groupOf, isForm, isWholeJson } from "../../../src/server/proxy/proxy-body.ts";
import { PassedPaths } from "../../../src/server/proxy/proxy-paths.ts";
import {
  sentencesEnd,
  voiceNameOf,
  textOf as wyomingText,
} from "../../../src/server/wyoming/wyoming-text.ts";
import { parseLastEventId, parseReturn } from "../../../src/session/connections/return-token.ts";
import { parseSettings, reconfigure } from "../../../src/session/listener-settings.ts";
import { cut, linesOf, outcomeOf, requireSame, type Target, textOf, tolerate, whole } from "../target.ts";

const DEFAULTS = { leadMs: 400, maxLeadMs: 30_000 };
const VOICE = "21m00Tcm4TlvDq8ikWAM";

const COMMAND_WORDS = [
  ..."speak text flush end dialogue interrupt cancel resume mark played configure ping close hangup refresh token".split(
    " ",
  ),
  ..."type utterance_id voice_id model_id language_code voice_settings stability similarity_boost style".split(
    " ",
  ),
  ..."use_speaker_boost speed seed apply_text_normalization enable_logging clean replacements from to".split(
    " ",
  ),
  ..."ignore_case whole_word priority replace queued all inputs speaker settings keep_ms name seq at_ms".split(
    " ",
  ),
  ..."format frame_ms framing pace lead_ms policy events offsets cue_profile cue_mode id call_id".split(" "),
  ..."pcm_24000 opus_48000 none raw realtime burst lossless live captions words utf16 markdown urls emoji".split(
    " ",
  ),
];
const VENDOR_WORDS = [
  ..."text try_trigger_generation voice_settings stability similarity_boost style speed flush".split(" "),
  ..."generation_config generator_config chunk_length_schedule context_id contextId close_context".split(" "),
  ..."close_socket pronunciation_dictionary_locators pronunciation_dictionary_id version_id xi_api_key".split(
    " ",
  ),
  ..."xi-api-key authorization single_use_token voices inputs voice_id new_turn keep_alive".split(" "),
];
const QUERY_WORDS = [
  ..."role= format= frame_ms= framing= pace= lead_ms= policy= events= offsets= cue_profile= cue_mode=".split(
    " ",
  ),
  ..."caller= resume= seq= at_ms= token= wait= rate= silence= live= words= origin_ms= last_event_id=".split(
    " ",
  ),
  ..."speaker listener both pcm_24000 opus_48000 ulaw_8000 none words,cues true false realtime burst".split(
    " ",
  ),
  ..."web pop-on %00 %ff %ed%a0%80 & = + 1e9 -1 0x10 NaN Infinity".split(" "),
];

const parseNative: Target = {
  words: COMMAND_WORDS,
  seeds: [
    { type: "speak", text: "Hi", utterance_id: "u-1", voice_settings: { speed: 1.1 }, seed: 5, priority: 2 },
    {
      type: "text",
      text: " tok",
      replacements: [{ from: "a", to: "b", ignore_case: true }],
      clean: ["markdown"],
    },
    {
      type: "dialogue",
      inputs: [{ text: "a", voice_id: "v", speaker: "Ann" }],
      settings: { stability: 0.5 },
    },
    { type: "play", audio: "AAAA", format: "pcm_8000", replace: "all" },
    {
      type: "play",
      under: true,
      audio: "AAAA",
      format: "pcm_8000",
      loop: "speech",
      gain_db: -6,
      duck_db: 10,
    },
    { type: "speak", text: "Hi", vendor_options: { elevenlabs: { a: { b: [1] } } } },
    { type: "stop", utterance_id: "u", fade_ms: 100 },
    { type: "play", sound: { kind: "tone", hertz: [440, 480], on_ms: 100, off_ms: 100, ms: 1000 } },
    { type: "prepare", text: "Hi", prepared_id: "p", loudness_lufs: -20 },
    { type: "played", at_ms: 12.5, seq: 3 },
    { type: "configure", format: "opus_48000", events: ["words"], lead_ms: 300 },
    { type: "refresh", token: "a.b.c" },
    { type: "ping", id: "x" },
    { type: "hangup", call_id: "c" },
  ].map((command) => JSON.stringify(command)),
  run: (input) => {
    try {
      const { command } = parseCommand(textOf(input));
      const { settings } = parseSettings(new URLSearchParams(), DEFAULTS);
      if (command.type === "configure") reconfigure(settings, command, DEFAULTS);
    } catch (thrown) {
      if (thrown instanceof GatewayError) JSON.stringify(errorBody(thrown));
      throw thrown;
    }
  },
};

const parseVendorSpeech: Target = {
  words: VENDOR_WORDS,
  seeds: [
    '{"text":" ","voice_settings":{"stability":0.5,"similarity_boost":0.8},"xi_api_key":"k"}',
    '{"text":"Hello ","try_trigger_generation":true,"generation_config":{"chunk_length_schedule":[120,160]}}',
    '{"text":"","context_id":"c1","flush":true,"close_context":true}',
    '{"close_socket":true,"pronunciation_dictionary_locators":[{"pronunciation_dictionary_id":"d"}]}',
  ],
  run: (input) => {
    const text = textOf(input);
    for (const isMulti of [false, true]) {
      tolerate(() => {
        const { options } = parseSpeechMessage(text, isMulti);
        changedOption({ voiceSettings: undefined, chunkLengthSchedule: [1], locators: undefined }, options);
      });
    }
  },
};

const parseVendorDialogue: Target = {
  words: VENDOR_WORDS,
  seeds: [
    `{"context_id":"c","voices":["${VOICE}"],"voice_settings":{"stability":0.5},"inputs":[]}`,
    `{"inputs":[{"text":"Hi","voice_id":"${VOICE}","new_turn":true}],"flush":true}`,
    '{"context_id":"c","close_context":true,"keep_alive":true}',
  ],
  run: (input) => {
    const text = textOf(input);
    for (const isMulti of [false, true]) tolerate(() => parseDialogueMessage(text, isMulti));
  },
};

const readVendorQuery: Target = {
  words: [
    ..."model_id= output_format= language_code= seed= enable_logging= sync_alignment= absolute_times=".split(
      " ",
    ),
    ..."apply_text_normalization= apply_language_text_normalization= inactivity_timeout= auto_mode=".split(
      " ",
    ),
    ..."enable_ssml_parsing= authorization= single_use_token= true on 0 eleven_v3 mp3_44100 mp3_44100_128".split(
      " ",
    ),
    ..."__proto__ constructor %00 & = 99999999999999999999".split(" "),
  ],
  seeds: [
    "model_id=eleven_flash_v2_5&output_format=pcm_16000&language_code=en&seed=5&enable_logging=false",
    "inactivity_timeout=60&sync_alignment=true&auto_mode=1&enable_ssml_parsing=yes&apply_text_normalization=on",
    "model_id=eleven_v3_conversational&single_use_token=t&authorization=Bearer%20k",
  ],
  run: (input) => {
    const query = new URLSearchParams(textOf(input));
    maxVoices(query.get("model_id") ?? "");
    for (const kind of ["speech", "dialogue"] as const) {
      tolerate(() => parseSocketSettings(query, kind, (name) => /^(?:mp3|pcm|ulaw|opus)_/.test(name)));
    }
  },
};

const readOpenAi: Target = {
  words:
    "model input voice instructions response_format speed stream_format id voices voice_id name labels gender female alloy wav mp3 sse audio".split(
      " ",
    ),
  seeds: [
    '{"model":"tts-1","input":"Hello","voice":"alloy","response_format":"wav","speed":1.25}',
    '{"model":"gpt-4o-mini-tts","input":"Hi","voice":{"id":"x"},"instructions":"calm","stream_format":"sse"}',
    `{"voices":[{"voice_id":"${VOICE}","name":"Rachel","labels":{"gender":"female"}},{"voice_id":"b"}]}`,
  ],
  run: (input) => {
    const text = textOf(input);
    tolerate(() => {
      try {
        parseOpenAiSpeech(text);
      } catch (thrown) {
        if (thrown instanceof GatewayError) JSON.stringify(openAiError(thrown));
        throw thrown;
      }
    });
    const voices = tolerate(() => parseVoiceList(text)) ?? [];
    for (const name of ["alloy", "ash", "constructor", voices[0]?.name ?? ""]) voiceOf(name, voices);
  },
};

/** A line for the query, and one for the id of the last event. */
const readQueries: Target = {
  words: QUERY_WORDS,
  seeds: [
    "role=listener&format=opus_48000&frame_ms=20&events=words,cues&cue_profile=web&lead_ms=500\nabc:12",
    "role=speaker&format=none&caller=pcm_16000&offsets=utf16\n",
    "resume=AAAAAAAAAAAAAAAAAAAAAA&seq=12&at_ms=1520.25&policy=lossless&pace=burst\n",
    "rate=48000&silence=true&wait=true\n",
    "live=false&words=true&origin_ms=-250.5&last_event_id=e:5\n",
  ],
  run: (input) => {
    const [text = "", last = ""] = linesOf(input);
    const query = new URLSearchParams(text);
    tolerate(() => parseSettings(query, DEFAULTS));
    tolerate(() => parseReturn(query));
    tolerate(() => parseLastEventId(last));
    for (const name of ["ogg", "wav", "pcm", "ulaw", "mp3"] as const) {
      tolerate(() => parseAudioRequest(name, query, DEFAULTS));
    }
    tolerate(() => parseEventsRequest(query, { lastEventId: last, defaults: DEFAULTS }));
    tolerate(() => parseFileRequest("vtt", query, DEFAULTS));
  },
};

/** Lines: method, path, query, body, the setting proxy-paths. */
const readProxied: Target = {
  words:
    "GET POST HEAD /v1/ /v2/ /voices .. %2e%2e %2f %5c %25 %c0%af ; \\ // {id} * , %00 application/json".split(
      " ",
    ),
  seeds: [
    `POST\n/v1/text-to-speech/${VOICE}/stream\noutput_format=pcm_16000\n{"model_id":"eleven_v3"}\n`,
    "GET\n/v1/voices\n\n\nGET /v1/dubbing/{id}, POST /v1/studio/*",
    "DELETE\n/v1/history/%C3%A4\na=b\n\nPUT /v2/x.y/{a}/b",
  ],
  run: (input) => {
    const [method = "", path = "", query = "", body = "", more = ""] = linesOf(input);
    tolerate(() => BUILT_IN_PATHS.check({ method, path, query }));
    tolerate(() => new PassedPaths(more).check({ method, path, query }));
    groupOf(method, path, body);
    isWholeJson([["content-type", body]]);
    isForm([["content-type", body]]);
  },
};
const BUILT_IN_PATHS = new PassedPaths("");

const describeFault: Target = {
  words: ["malformed_json", "text_too_long", "invalid_field"],
  seeds: ["invalid_field\nField 'voice_settings' is not valid", `text_too_long\n${"x".repeat(300)}`],
  run: (input) => {
    const [, ...message] = linesOf(input);
    faultOf(new GatewayError("invalid_field", message.join("\n")), [VOICE]);
  },
};

/** What its frames are does not depend on how they were cut. */
const wyomingFrames: Target = {
  words: [
    ..."type data data_length payload_length version text voice name rate width channels".split(" "),
    ..."describe info synthesize synthesize-start synthesize-chunk synthesize-stop audio-chunk error".split(
      " ",
    ),
    '{"type":"describe"}\n',
  ],
  seeds: [
    '{"type":"describe"}\n{"type":"synthesize","data":{"text":"Hello"}}\n',
    wyomingFrame("synthesize", { text: "Hello there.", voice: { name: "a", speaker: "b" } }),
    wyomingFrame("audio-chunk", { rate: 22_050, width: 2, channels: 1 }, Buffer.from("abcd")),
    '{"type":"a","data":{"x":1},"data_length":7,"payload_length":2}\n{"x":2}ab',
  ],
  run: (input) => requireSame("cut", framesOf(whole(input)), framesOf(cut(input))),
};

function framesOf(pieces: Iterable<Buffer>): string {
  const frames: unknown[] = [];
  const reader = new WyomingReader({
    limits: { header: 512, data: 256, payload: 128 },
    broken: (what) => new GatewayError("upstream_protocol", what),
    onFrame: ({ type, data, payload }) => {
      frames.push([type, data, payload.toString("hex"), voiceNameOf(data)]);
      const text = tolerate(() => wyomingText(data));
      if (text !== undefined && sentencesEnd(text) > text.length)
        throw new Error("a sentence ends behind the text");
    },
  });
  const outcome = outcomeOf(() => {
    for (const piece of pieces) reader.push(Buffer.from(piece));
  });
  return JSON.stringify([frames, outcome]);
}

export const PROTOCOL_TARGETS: Readonly<Record<string, Target>> = {
  "native-commands": parseNative,
  "vendor-speech-messages": parseVendorSpeech,
  "vendor-dialogue-messages": parseVendorDialogue,
  "vendor-socket-query": readVendorQuery,
  "vendor-socket-faults": describeFault,
  "openai-speech": readOpenAi,
  "settings-queries": readQueries,
  "proxied-requests": readProxied,
  "wyoming-frames": wyomingFrames,
};
