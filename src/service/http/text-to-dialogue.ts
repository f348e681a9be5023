/** Section "Text to dialogue" (service-interface.md 4.8, contract A4): several voices in one response. */
import type { FastifyInstance } from "fastify";
import { readBody } from "./body.ts";
import { authorize, queryFields, type ServiceContext } from "./context.ts";
import type { Fields } from "./pydantic.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";
import { speak } from "./speak.ts";
import { NORMALIZATIONS, readDictionaryIds, readQuery, type SpeechShape } from "./speech-request.ts";

const ENDPOINTS = [
  { path: "", isStream: false, wantsTiming: false },
  { path: "/with-timestamps", isStream: false, wantsTiming: true },
  { path: "/stream", isStream: true, wantsTiming: false },
  { path: "/stream/with-timestamps", isStream: true, wantsTiming: true },
] as const;

/** In the interface's order. */
const BODY_FIELDS = [
  "inputs",
  "model_id",
  "language_code",
  "settings",
  "pronunciation_dictionary_locators",
  "seed",
  "apply_text_normalization",
] as const;
const DEFAULT_MODEL = "eleven_v3";

export function registerTextToDialogue(app: FastifyInstance, context: ServiceContext): void {
  for (const { path, isStream, wantsTiming } of ENDPOINTS) {
    app.post(`/v1/text-to-dialogue${path}`, async (request, reply) => {
      const beganMs = performance.now();
      const faults: ValidationEntry[] = [];
      const query = readQuery(queryFields(request, faults), { hasLatency: false });
      const raw = {
        contentType: request.headers["content-type"],
        bytes: request.body as Uint8Array | undefined,
      };
      const body = readBody(raw, { names: BODY_FIELDS, faults });
      const shape = { ...readDialogue(body), ...query };
      if (faults.length > 0) throw Refusal.invalid(faults);
      authorize(context, request);
      await speak(
        context,
        { request, reply, beganMs },
        { shape, kind: { isDialogue: true, isStream, wantsTiming } },
      );
    });
  }
}

function readDialogue(body: Fields): Omit<SpeechShape, "outputFormat" | "isLogged"> {
  const inputs = (body.objectList("inputs", { isRequired: true }) ?? []).map((input) => ({
    text: input.requiredText("text"),
    voiceId: input.requiredText("voice_id"),
  }));
  const modelId = body.text("model_id") ?? DEFAULT_MODEL;
  const languageCode = body.text("language_code");
  const settings = body.object("settings");
  const stability = settings?.number("stability", { min: 0, max: 1 });
  settings?.number("similarity");
  const dictionaryIds = readDictionaryIds(body);
  const seed = body.integer("seed");
  const normalization = body.choice("apply_text_normalization", NORMALIZATIONS) ?? "auto";
  // Newer, optional fields: read for their types; a dialogue takes previous_text where speech with the same model does not.
  body.boolean("use_pvc_as_ivc");
  body.text("previous_text");
  body.text("future_text");
  return {
    inputs,
    modelId,
    languageCode,
    stability,
    style: undefined,
    speed: undefined,
    dictionaryIds,
    seed,
    hasPreviousText: false,
    hasNextText: false,
    previousRequestIds: body.textList("previous_request_ids") ?? [],
    nextRequestIds: body.textList("next_request_ids") ?? [],
    normalization,
  };
}
