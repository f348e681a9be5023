/** Every scripted service that the tests have, what it is asked with, and where in its answers audio stands. */
import type { FakeScript } from "../../test/helpers/fake-answer.ts";
import { speaking } from "../../test/helpers/fake-scripts.ts";
import { AZURE_KEY, AZURE_VOICE, azure } from "../../test/kit/vendors/azure.ts";
import { CARTESIA_KEY, CARTESIA_VOICE, cartesia } from "../../test/kit/vendors/cartesia.ts";
import { DEEPGRAM_KEY, DEEPGRAM_VOICE, deepgram } from "../../test/kit/vendors/deepgram.ts";
import type { SocketScript } from "../../test/kit/vendors/fake-socket.ts";
import { HUME_KEY, HUME_VOICE, hume } from "../../test/kit/vendors/hume.ts";
import { INWORLD_KEY, INWORLD_VOICE, inworld } from "../../test/kit/vendors/inworld.ts";
import { KOKORO_VOICE, kokoro } from "../../test/kit/vendors/kokoro.ts";
import { OPENAI_VOICE, openAi } from "../../test/kit/vendors/openai.ts";
import { PIPER_VOICE, piper } from "../../test/kit/vendors/piper.ts";
import { RIME_KEY, RIME_VOICE, rime } from "../../test/kit/vendors/rime.ts";
import { SONIOX_KEY, SONIOX_VOICE, soniox } from "../../test/kit/vendors/soniox.ts";
import { SPEECHIFY_KEY, SPEECHIFY_VOICE, speechify } from "../../test/kit/vendors/speechify.ts";
import { WYOMING_VOICE } from "../../test/kit/vendors/wyoming.ts";
import { XAI_KEY, XAI_VOICE, xai } from "../../test/kit/vendors/xai.ts";

/** What the gateway's first upstream is called here. */
export const FIRST = "first";

/** An object of its answer, read without trust: where its audio stands in base64, if it has any. */
export type AudioOf = (value: Record<string, unknown>) => unknown;

export type ScriptedService = {
  readonly key: string;
  readonly voice: string;
} & (
  | { readonly kind: "lines"; readonly script: () => FakeScript; readonly audioOf: AudioOf }
  | { readonly kind: "audio"; readonly script: () => FakeScript }
  | { readonly kind: "messages"; readonly script: () => SocketScript; readonly audioOf: AudioOf }
  | { readonly kind: "azure"; readonly script: () => SocketScript }
  | { readonly kind: "wyoming" }
);

/** By the names of the adapters. */
export const SCRIPTED_SERVICES: Readonly<Record<string, ScriptedService>> = {
  [FIRST]: {
    ...{ kind: "lines", key: "", voice: "tone-a", script: speaking },
    audioOf: ({ audio_base64 }) => audio_base64,
  },
  cartesia: {
    ...{ kind: "lines", key: CARTESIA_KEY, voice: CARTESIA_VOICE, script: cartesia },
    audioOf: ({ data }) => data,
  },
  inworld: {
    ...{ kind: "lines", key: INWORLD_KEY, voice: INWORLD_VOICE, script: inworld },
    audioOf: ({ result }) => (result as { readonly audioContent?: unknown } | undefined)?.audioContent,
  },
  hume: {
    ...{ kind: "lines", key: HUME_KEY, voice: HUME_VOICE, script: hume },
    audioOf: ({ audio }) => audio,
  },
  speechify: {
    ...{ kind: "lines", key: SPEECHIFY_KEY, voice: SPEECHIFY_VOICE, script: speechify },
    audioOf: ({ audio }) => audio,
  },
  kokoro: {
    ...{ kind: "lines", key: "", voice: KOKORO_VOICE, script: kokoro },
    audioOf: ({ audio }) => audio,
  },
  openai: { kind: "audio", key: "", voice: OPENAI_VOICE, script: openAi },
  deepgram: { kind: "audio", key: DEEPGRAM_KEY, voice: DEEPGRAM_VOICE, script: deepgram },
  piper: { kind: "audio", key: "", voice: PIPER_VOICE, script: piper },
  rime: {
    ...{ kind: "messages", key: RIME_KEY, voice: RIME_VOICE, script: rime },
    audioOf: ({ data }) => data,
  },
  xai: {
    ...{ kind: "messages", key: XAI_KEY, voice: XAI_VOICE, script: xai },
    audioOf: ({ delta }) => delta,
  },
  soniox: {
    ...{ kind: "messages", key: SONIOX_KEY, voice: SONIOX_VOICE, script: soniox },
    audioOf: ({ audio }) => audio,
  },
  azure: { kind: "azure", key: AZURE_KEY, voice: AZURE_VOICE, script: azure },
  wyoming: { kind: "wyoming", key: "", voice: WYOMING_VOICE },
};
