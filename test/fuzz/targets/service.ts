/** The built-in service's bodies: JSON of all kinds, forms, and uploads that WebAssembly decodes. */
import { type FastifyInstance, fastify } from "fastify";
import { ApiError, type ValidationEntry } from "../../../src/service/api-error.ts";
import { jsonSource } from "../../../src/service/http/body.ts";
import { RULES, requireNames, rulesOf } from "../../../src/service/http/dictionaries/dictionary-schema.ts";
import { file, files, formSource } from "../../../src/service/http/form.ts";
import { boolean, integer, list, number, text } from "../../../src/service/http/kinds.ts";
import { optional, readShape, required, type Shape } from "../../../src/service/http/schema.ts";
import {
  LANGUAGE,
  LOCATORS,
  NORMALIZATION,
  SEED_FIELD,
  SPOKEN_TEXT,
  speechQuery,
  VOICE_SETTINGS,
} from "../../../src/service/http/speech/speech-fields.ts";
import { TemporaryFiles } from "../../../src/service/media/temporary-file.ts";
import { Uploads } from "../../../src/service/media/upload.ts";
import { OnnxFault, readOnnxBytes } from "../../../src/service/voice/neural/onnx-file.ts";
import { onnxModel } from "../../kit/onnx-model.ts";
import { linesOf, type Target, textOf } from "../target.ts";

const SHAPE = {
  text: required(SPOKEN_TEXT, "text"),
  language_code: LANGUAGE,
  voice_settings: optional(VOICE_SETTINGS, "settings"),
  pronunciation_dictionary_locators: LOCATORS,
  seed: SEED_FIELD,
  apply_text_normalization: NORMALIZATION,
  rules: RULES,
  flag: optional(boolean(), "flag"),
  count: optional(integer({ range: { min: 0, max: 9 } }), "count"),
  level: optional(number({ range: { min: 0, max: 1 } }), "level"),
  names: optional(list(text({ minLength: 1, maxLength: 9 })), "names"),
} as const satisfies Shape;
const FORM = {
  name: required(text({ minLength: 1 }), "name"),
  description: optional(text(), "description"),
  count: optional(integer(), "count"),
  flag: optional(boolean(), "flag"),
  audio: required(file(), "audio"),
  files: optional(files(), "files"),
} as const satisfies Shape;

function answer(faults: readonly ValidationEntry[]): void {
  if (faults.length > 0) ApiError.invalid(faults).json("trace");
}

/** The first line is the query of the URL, and the content type behind a blank. */
const jsonBodies: Target = {
  words: [
    ..."text language_code voice_settings stability similarity_boost style speed use_speaker_boost seed rules".split(
      " ",
    ),
    ..."pronunciation_dictionary_locators pronunciation_dictionary_id version_id apply_text_normalization".split(
      " ",
    ),
    ..."type alias phoneme alphabet string_to_replace case_sensitive word_boundaries flag count level names".split(
      " ",
    ),
    ..."ipa cmu-arpabet auto on off 1.0 1e5 0x1 yes application/json output_format= enable_logging= __proto__".split(
      " ",
    ),
  ],
  seeds: [
    'output_format=pcm_16000&enable_logging=false application/json\n{"text":"Hi","voice_settings":{"stability":0.5,"speed":1.1},"seed":5,"rules":[{"type":"alias","string_to_replace":"a","alias":"b"}]}',
    ' \n{"text":"Hi","rules":[{"type":"phoneme","string_to_replace":"a","phoneme":"eɪ","alphabet":"ipa"}],"flag":"yes","count":"3","level":0.5,"names":["x"]}',
    ' text/csv\n{"text":null,"rules":null}',
  ],
  run: (input) => {
    const [head = ""] = linesOf(input);
    const [query = "", ...type] = head.split(" ");
    const faults: ValidationEntry[] = [];
    const asked = Object.fromEntries(new URLSearchParams(query));
    readShape(speechQuery({ isStream: true }), asked, { origin: "query", faults });
    const bytes = input.subarray(input.indexOf("\n") + 1);
    try {
      const source = jsonSource({ contentType: type.join(" "), bytes }, { shape: SHAPE, faults });
      const body = readShape(SHAPE, source, { origin: "body", faults });
      answer(faults);
      if (body === undefined) return;
      requireNames({ name: body.text, description: body.language_code });
      rulesOf(body.rules);
    } catch (thrown) {
      if (thrown instanceof ApiError) thrown.json("trace");
      throw thrown;
    }
  },
};

/** One server for all inputs, without a port. */
class FormServer {
  readonly #uploads = new Uploads(new TemporaryFiles({ maxBytes: 1_048_576 }), {
    maxFileBytes: 8192,
    lingerMs: 1,
  });
  #app: Promise<FastifyInstance> | null = null;

  async post(contentType: string, payload: Buffer): Promise<void> {
    this.#app ??= this.#start();
    const { statusCode, body } = await (await this.#app).inject({
      method: "POST",
      url: "/",
      headers: { "content-type": contentType },
      payload,
    });
    if (statusCode >= 500) throw new Error(`answered with ${statusCode}: ${body.slice(0, 400)}`);
  }

  async #start(): Promise<FastifyInstance> {
    const app = fastify();
    await this.#uploads.register(app);
    // Requests that come without a connection have half a socket: a refused body is cut off with it.
    app.addHook("onRequest", async ({ raw }) => {
      raw.socket.destroy ??= () => raw.socket;
    });
    app.setErrorHandler((error, _request, reply) => {
      if (error instanceof ApiError) return reply.code(error.httpStatus).send(error.json("trace"));
      const { statusCode = 500, message } = error as { statusCode?: number; message: string };
      return reply.code(statusCode).send(message);
    });
    app.post("/", async (request, reply) => {
      // No byte of a stranger's files is kept, so that a million inputs need no disk.
      const stranger = ApiError.unfit("stranger", "no key");
      const upload = await this.#uploads.read(request, reply, { stranger });
      try {
        const faults: ValidationEntry[] = [];
        readShape(FORM, formSource(upload, FORM), { origin: "body", faults });
        answer(faults);
        return "ok";
      } finally {
        await upload.close();
      }
    });
    return app;
  }
}
const SERVER = new FormServer();

function formSeed(...parts: readonly string[]): string {
  return `multipart/form-data; boundary=x\n${parts.map((part) => `--x\r\n${part}\r\n`).join("")}--x--\r\n`;
}

/** The first line is the content type, the rest the body. */
const forms: Target = {
  words: [
    ..."--x --x-- \r\n \r\n\r\n boundary= boundary=\"x\" Content-Disposition: form-data; name= filename= filename*=UTF-8''".split(
      " ",
    ),
    ..."Content-Type: application/json text/plain; charset=utf-16 Content-Transfer-Encoding: base64 audio files".split(
      " ",
    ),
    ..."__proto__ constructor name description count flag %ff \u0000".split(" "),
  ],
  seeds: [
    formSeed(
      'Content-Disposition: form-data; name="name"\r\n\r\nRachel',
      'Content-Disposition: form-data; name="audio"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF',
    ),
    formSeed(
      'Content-Disposition: form-data; name="count"\r\nContent-Type: application/json\r\n\r\n{"a":1}',
      "Content-Disposition: form-data; name=audio; filename*=UTF-8''%c3%a4.wav\r\n\r\n",
    ),
    "application/json\n{}",
  ],
  run: async (input) => {
    const end = input.indexOf("\n");
    const type = textOf(input.subarray(0, Math.max(0, end))).replace(/[^\x20-\x7e]/g, "");
    await SERVER.post(type === "" ? "multipart/form-data; boundary=x" : type, input.subarray(end + 1));
  },
};

const ONNX_MODEL = onnxModel({
  metadata: { model_type: "vits", n_speakers: 2, sample_rate: 16_000 },
  sounds: [new Float32Array(8)],
  speakers: 2,
  isNoisy: true,
});

/** Of files that an operator has downloaded. */
const voiceModels: Target = {
  words: ["model_type", "RandomNormalLike", "\u003a\u0004", "\u0072\u0004"],
  seeds: [ONNX_MODEL, ONNX_MODEL.subarray(0, 200)],
  run: (input) => {
    try {
      readOnnxBytes(input);
    } catch (thrown) {
      if (!(thrown instanceof OnnxFault)) throw thrown;
    }
  },
};

export const SERVICE_TARGETS: Readonly<Record<string, Target>> = {
  "service-json": jsonBodies,
  "service-forms": forms,
  "service-voice-models": voiceModels,
};
