/**
 * `/carrier/jambonz/tts`: the gateway as a custom speech vendor of jambonz, by POST for each text (here) and by a
 * WebSocket for each call (jambonz-sockets.ts). Both ask for the carrier token, where one is set.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { GatewayError } from "../../errors.ts";
import {
  type JambonzAudio,
  jambonzAudio,
  parseJambonzTts,
  upstreamLanguage,
} from "../../protocol/carrier/jambonz-tts.ts";
import { sayable } from "../../vendor-sockets/sayable.ts";
import { isSpeakable } from "../../vendor-sockets/text-buffer.ts";
import { type AskedSpeech, SpeechAnswer, type SpeechAnswerDeps } from "../players/speech-answer.ts";
import { type Encoder, PLAIN, wavEncoder } from "../players/spoken-body.ts";
import type { Routes } from "../routes.ts";
import type { MessageSockets } from "../sockets/message-sockets.ts";
import { admitCarrier, knockOf } from "./carrier-auth.ts";
import { type JambonzSocketsOptions, mountJambonzSockets } from "./jambonz-sockets.ts";

export interface JambonzTtsRouteOptions extends JambonzSocketsOptions, SpeechAnswerDeps {}

const PATH = "/carrier/jambonz/tts";

/** What it returns are the sockets, to be closed with the gateway. */
export function routeJambonzTts(app: Routes, options: JambonzTtsRouteOptions): MessageSockets {
  app.post(PATH, (res, req) => answerPost(res, req, options));
  return mountJambonzSockets(app, PATH, options);
}

function answerPost(res: HttpResponse, req: HttpRequest, options: JambonzTtsRouteOptions): void {
  const answer = new SpeechAnswer(res, {
    deps: options,
    name: "jambonz's speech",
    tell: (reply, error) => reply.fail(error),
  });
  try {
    admitCarrier(knockOf(req, "jambonz"), options);
    const audio = jambonzAudio(req.getHeader("accept"));
    answer.start(async (body) => {
      const { voice, language, text: written } = parseJambonzTts(body);
      const text = sayable(written, options.defaultModel);
      if (!isSpeakable(text)) {
        const message = "Field 'text' has no words, expected something to say";
        throw new GatewayError("invalid_field", message, { field: "text" });
      }
      const voiceId = await options.voices.idOf({ name: voice });
      return askedOf(audio, { voiceId, text, language, modelId: options.defaultModel });
    });
  } catch (thrown) {
    answer.refuse(thrown);
  }
}

interface Asked {
  readonly voiceId: string;
  readonly text: string;
  /** As jambonz has it, or "". */
  readonly language: string;
  readonly modelId: string;
}

function askedOf(audio: JambonzAudio, { language, ...asked }: Asked): AskedSpeech {
  const { outputFormat, ...body } = bodyOf(audio);
  const languageCode = upstreamLanguage(language, asked.modelId);
  return {
    ...body,
    events: null,
    speech: { ...asked, outputFormat, ...(languageCode === undefined ? {} : { languageCode }) },
  };
}

/** How the upstream is asked for it, and what it is called on the way out, as jambonz spells it. */
function bodyOf(audio: JambonzAudio): {
  readonly contentType: string;
  readonly outputFormat: string;
  readonly encoder: Encoder;
} {
  if (audio.kind === "mp3")
    return { contentType: "audio/mpeg", outputFormat: "mp3_44100_64", encoder: PLAIN };
  const { kind, sampleRate } = audio;
  const outputFormat = `pcm_${sampleRate}`;
  // The low byte first, whatever RFC 2586 says: jambonz keeps the body as a raw file of FreeSWITCH's, unchanged.
  if (kind === "l16") return { contentType: `audio/l16;rate=${sampleRate}`, outputFormat, encoder: PLAIN };
  return { contentType: "audio/wav", outputFormat, encoder: wavEncoder(sampleRate) };
}
