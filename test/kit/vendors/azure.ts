/** Azure's speech socket, scripted: messages with headers, strict about what it is sent. */
import type { FakeStep } from "../../helpers/fake-answer.ts";
import type { SocketAnswer, SocketScript } from "./fake-socket.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError, type TimedOptions, type TimedWriter, timedSteps } from "./timed-steps.ts";

export const AZURE_KEY = "azure-0123456789abcdef";
export const AZURE_VOICE = "en-US-AvaNeural";
const PATHS = ["speech.config", "synthesis.context", "ssml"];
const RATES: Readonly<Record<string, number>> = {
  "raw-16khz-16bit-mono-pcm": 16_000,
  "raw-22050hz-16bit-mono-pcm": 22_050,
  "raw-24khz-16bit-mono-pcm": 24_000,
  "raw-44100hz-16bit-mono-pcm": 44_100,
  "raw-48khz-16bit-mono-pcm": 48_000,
};
const FLAGS = ["wordBoundary", "punctuationBoundary", "sentenceBoundary", "bookmark", "viseme", "sessionEnd"];
const AUDIO = "audio:";
const FAILED = "failed";
const SSML =
  /^<speak version="1\.0" xmlns="http:\/\/www\.w3\.org\/2001\/10\/synthesis" xml:lang="[a-z]{2,3}-[A-Z]{2}"><voice name="([^"]+)">(?:<prosody rate="[\d.]+">)?(.*?)(?:<\/prosody>)?<\/voice><\/speak>$/s;

export function azure(options: TimedOptions = {}): SocketScript {
  return ({ path, headers, messages }) => {
    if (messages.length === 0) {
      if (headers["ocp-apim-subscription-key"] !== AZURE_KEY)
        return jsonError(401, { error: { code: "401" } });
      if (path !== "/cognitiveservices/websocket/v1") return jsonError(404, {});
      if (options.fault === "too many") return jsonError(429, { error: { code: "429" } });
      return options.fault === "html" ? htmlPage() : null;
    }
    const sent = messages.map(frameOf);
    const strict = new Strict({ headers }).header("x-connectionid", /^[0-9a-f]{32}$/);
    for (const [index, { headers: given }] of sent.entries()) {
      strict
        .must(given.path === PATHS[index], `message ${index} is ${given.path}`)
        .must(given["x-requestid"] === sent[0]?.headers["x-requestid"], "ids differ")
        .must(/^[0-9a-f]{32}$/.test(given["x-requestid"] ?? ""), "no request id")
        .must(/^\d{4}-.*Z$/.test(given["x-timestamp"] ?? ""), "no timestamp");
    }
    if (strict.fault !== undefined) return { body: [{ close: 1007 }] };
    return sent.length < PATHS.length ? null : answer(sent, strict, options);
  };
}

function answer(sent: readonly Frame[], strict: Strict, options: TimedOptions): SocketAnswer {
  const context = JSON.parse(sent[1]?.body ?? "{}") as {
    readonly synthesis?: {
      readonly audio?: { readonly metadataOptions?: Record<string, boolean>; outputFormat?: string };
    };
  };
  const { metadataOptions = {}, outputFormat = "" } = context.synthesis?.audio ?? {};
  const sampleRate = RATES[outputFormat];
  strict.fields(
    metadataOptions,
    "metadataOptions",
    Object.fromEntries(FLAGS.map((name) => [`${name}Enabled`, "boolean"])),
  );
  const [, voice, inner = ""] = SSML.exec(sent[2]?.body ?? "") ?? [];
  const text = plainOf(inner);
  if (strict.fault !== undefined || sampleRate === undefined || voice !== AZURE_VOICE)
    return { body: [textFrame("turn.start", {}), { close: 1007 }] };
  const steps = timedSteps(WRITER, {
    ...options,
    text,
    spoken: speak(text, { sampleRate, say: options.say }),
    hasTimes: metadataOptions.wordBoundaryEnabled === true,
    encode: bytesOf,
    sampleRate,
  });
  return { body: [textFrame("turn.start", { context: { serviceTag: "t" } }), ...steps.map(stepOf)] };
}

/** The text of what is in the voice; throws where it is not well-formed. */
function plainOf(inner: string): string {
  const text = inner.replace(/<break(?: (?:time|strength)="[^"]*")*\/>/g, " ");
  if (/[<>]|&(?!(?:amp|lt|gt|quot|apos);)/.test(text)) throw new Error(`Not well-formed: ${inner}`);
  const entities = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
  return text.replace(/&(\w+);/g, (_, name: keyof typeof entities) => entities[name]);
}

interface Frame {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function frameOf(message: string): Frame {
  const [head = "", ...body] = message.split("\r\n\r\n");
  const lines = head.split("\r\n").map((line) => line.split(/: ?(.*)/s));
  const headers = Object.fromEntries(lines.map(([name = "", value = ""]) => [name.toLowerCase(), value]));
  return { headers, body: body.join("\r\n\r\n") };
}

/** As the service writes it: without a space behind the colon. */
function textFrame(path: string, body: unknown): string {
  return `X-RequestId:0\r\nContent-Type:application/json; charset=utf-8\r\nPath:${path}\r\n\r\n${JSON.stringify(body)}`;
}

function stepOf(step: FakeStep): FakeStep | { readonly close: number } {
  if (step === FAILED) return { close: 1011 };
  if (typeof step !== "string" || !step.startsWith(AUDIO)) return step;
  const headers = Buffer.from("X-RequestId:0\r\nContent-Type:audio/x-wav\r\nX-StreamId:1\r\nPath:audio\r\n");
  const length = Buffer.alloc(2);
  length.writeUInt16BE(headers.length);
  return Buffer.concat([length, headers, Buffer.from(step.slice(AUDIO.length), "base64")]);
}

const WRITER: TimedWriter = {
  audio: (piece) => AUDIO + piece.toString("base64"),
  words: (words, isShort) =>
    textFrame("audio.metadata", {
      Metadata: words.flatMap(({ text, start, end }) => [
        {
          Type: "WordBoundary",
          Data: {
            Offset: Math.round(start * 1e7),
            ...(isShort ? {} : { Duration: Math.round(end * 1e7) - Math.round(start * 1e7) }),
            text: { Text: text, Length: text.length, BoundaryType: "WordBoundary" },
          },
        },
        { Type: "Viseme", Data: { Offset: 0, VisemeId: 1, IsLastAnimation: true } },
      ]),
    }),
  error: () => FAILED,
  end: textFrame("turn.end", {}),
};
