/** Rime's /ws3, scripted: a WebSocket, strict about its query and messages. */
import { encodeUlaw } from "../../../src/audio/codecs/g711.ts";
import type { SocketScript } from "./fake-socket.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const RIME_KEY = "rime-0123456789abcdef";
export const RIME_VOICE = "astra";
const RATES = ["8000", "16000", "22050", "24000", "44100", "48000"];
const PARAMETERS = ["speaker", "modelId", "audioFormat", "samplingRate", "lang", "segment"];

export function rime(options: TimedOptions = {}): SocketScript {
  return ({ path, query, headers, messages }) => {
    const given = Object.fromEntries(query);
    if (messages.length === 0) {
      if (headers.authorization !== `Bearer ${RIME_KEY}`) return jsonError(401, { message: "unauthorized" });
      if (path !== "/ws3") return jsonError(404, { message: "not found" });
      if (options.fault === "too many") return jsonError(429, { message: "too many" });
      if (options.fault === "html") return htmlPage();
      // A handshake alone asks whether it is there.
      const isKnown = [...query.keys()].every((name) => PARAMETERS.includes(name));
      return isKnown ? null : jsonError(400, { message: "unknown parameter" });
    }
    const strict = new Strict({ headers }).fields(given, "query", {
      speaker: RIME_VOICE,
      modelId: "string",
      audioFormat: ["pcm", "mulaw"],
      samplingRate: RATES,
      "lang?": ["eng", "spa", "fra", "ger", "hin", "por"],
    });
    const [text, eos] = messages.map((message) => JSON.parse(message) as Record<string, string>);
    strict.fields(text, "text", { text: "string" });
    if (eos !== undefined) strict.fields(eos, "eos", { operation: "eos" });
    if (strict.fault !== undefined) return { body: [WRITER.error(strict.fault)] };
    if (eos === undefined) return null;
    const sampleRate = Number(given.samplingRate);
    const spoken = speak(text?.text ?? "", { sampleRate, say: options.say });
    const encode = given.audioFormat === "mulaw" ? encodeUlaw : bytesOf;
    return {
      body: timedSteps(WRITER, {
        ...{ ...options, spoken, encode, sampleRate },
        text: text?.text ?? "",
        hasTimes: true,
      }),
    };
  };
}

const WRITER: TimedWriter = {
  audio: (piece) => message({ type: "chunk", data: piece.toString("base64"), contextId: null }),
  words: (words, isShort) =>
    message({
      type: "timestamps",
      word_timestamps: {
        words: words.map(({ text }) => text),
        start: words.map(({ start }) => start),
        end: isShort ? [] : words.map(({ end }) => end),
      },
    }),
  error: (text) => message({ type: "error", message: text }),
  end: message({ type: "done", done: true }),
};

function message(value: unknown): string {
  return JSON.stringify(value);
}
