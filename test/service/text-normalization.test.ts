/** What a text's fields change, with the vendor's own client: apply_text_normalization, language_code and their like. */
import type { ElevenLabs } from "@elevenlabs/elevenlabs-js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { VOICE } from "./client.ts";
import { errorOf, type Sdk, startSdk } from "./sdk-client.ts";

let started: Sdk;
beforeAll(async () => {
  started = await startSdk({ tier: "enterprise" });
});
afterAll(() => started[Symbol.asyncDispose]());

interface Fields {
  readonly modelId?: string;
  readonly languageCode?: string;
  readonly applyTextNormalization?: "auto" | "on" | "off";
  readonly applyLanguageTextNormalization?: boolean;
  readonly optimizeStreamingLatency?: number;
}

interface Heard {
  readonly audio: string;
  readonly written: string;
  readonly said: string;
}

/** With a seed: the same request is the same bytes. */
async function say(text: string, fields: Fields): Promise<Heard> {
  const answer = await started.sdk.textToSpeech.convertWithTimestamps(VOICE, {
    text,
    seed: 1,
    outputFormat: "pcm_16000",
    ...fields,
  });
  return heardOf(answer);
}

function heardOf(
  answer: Pick<ElevenLabs.AudioWithTimestampsResponse, "audioBase64" | "alignment" | "normalizedAlignment">,
): Heard {
  return {
    audio: answer.audioBase64,
    written: (answer.alignment?.characters ?? []).join(""),
    said: (answer.normalizedAlignment?.characters ?? []).join(""),
  };
}

it("apply_text_normalization: on, auto and off differ, the caller's text stays", async () => {
  for (const [languageCode, text, on] of [
    ["en", "Take 3 for $5.", "Take three for five dollars."],
    ["de", "Nimm 30 für 5 €.", "Nimm 30 für 5 Euro."],
    ["ja", "30と5€で", "30とごゆーろで"],
  ] as const) {
    const heard = await Promise.all(
      (["on", "auto", "off"] as const).map((applyTextNormalization) =>
        say(text, { languageCode, applyTextNormalization }),
      ),
    );
    expect(heard.map(({ written }) => written)).toEqual([text, text, text]);
    expect(heard[0]?.said).toBe(on);
    expect(heard[1]?.said).not.toBe(on);
    expect(heard[2]?.said).toBe(text);
    expect(new Set(heard.map(({ audio, said }) => `${said} ${audio}`)).size).toBe(3);
    expect(heard[1]?.audio).not.toBe(heard[2]?.audio);
  }
});

it("apply_text_normalization of a dialogue: on, auto and off differ", async () => {
  const said = async (applyTextNormalization: "auto" | "on" | "off") => {
    const inputs = [{ text: "Take 30 for $5.", voiceId: VOICE }];
    return heardOf(await started.sdk.textToDialogue.convertWithTimestamps({ inputs, applyTextNormalization }))
      .said;
  };
  expect(await said("on")).toBe("Take thirty for five dollars.");
  expect(await said("auto")).toBe("Take 30 for five dollars.");
  expect(await said("off")).toBe("Take 30 for $5.");
});

it("apply_language_text_normalization: Japanese is read in kana, another language_code is refused", async () => {
  measures(
    "POST /v1/text-to-speech/{voice_id}",
    "apply_language_text_normalization",
    "kana in normalized_alignment, and another sound",
  );
  const text = "3月5日は三千円です。";
  const [read, plain] = [
    await say(text, { languageCode: "ja", applyLanguageTextNormalization: true }),
    await say(text, { languageCode: "ja" }),
  ];
  expect(read.written).toBe(text);
  expect(read.said).toBe("さんがついつかはさんぜんえんです。");
  expect(plain.said).toBe(text);
  expect(read.audio).not.toBe(plain.audio);
  const { history } = await started.sdk.history.list({ pageSize: 2 });
  expect(history.map(({ settings }) => settings?.apply_language_text_normalization)).toEqual([
    undefined,
    true,
  ]);
  // Where no language is named, the text's own is.
  expect((await say(text, { applyLanguageTextNormalization: true })).said).toBe(read.said);
  const { statusCode, body } = await errorOf(
    say("Hallo", { languageCode: "de", applyLanguageTextNormalization: true }),
  );
  expect(statusCode).toBe(400);
  expect(body).toMatchObject({
    detail: { code: "invalid_parameters", param: "apply_language_text_normalization" },
  });
});

it("text: a phoneme tag is heard in either alphabet, one that can't be said leaves the word", async () => {
  const [ipa, arpabet, unknown, plain] = [
    await say('My <phoneme alphabet="ipa" ph="təˈmɑːtoʊ">tomato</phoneme>.', {}),
    await say("My <phoneme ph='T AH0 M AA1 T OW0' alphabet='cmu-arpabet'>tomato</phoneme>.", {}),
    await say('My <phoneme alphabet="ipa" ph="ʁy">tomato</phoneme>.', {}),
    await say("My tomato.", {}),
  ];
  expect(ipa.written).toBe('My <phoneme alphabet="ipa" ph="təˈmɑːtoʊ">tomato</phoneme>.');
  expect([ipa.said, arpabet.said, unknown.said]).toEqual(["My tomato.", "My tomato.", "My tomato."]);
  expect(ipa.audio).toBe(arpabet.audio);
  expect(ipa.audio).not.toBe(plain.audio);
  expect(unknown.audio).toBe(plain.audio);
});

it("language_code: each model speaks the languages that it lists, and refuses others", async () => {
  const [english, german] = [
    await say("Alle hier", { languageCode: "en" }),
    await say("Alle hier", { languageCode: "de" }),
  ];
  expect(english.audio).not.toBe(german.audio);
  const models = (await started.sdk.models.list()).filter((model) => model.canDoTextToSpeech);
  for (const { modelId, languages } of models) {
    const codes = languages?.map(({ languageId }) => languageId) ?? [];
    for (const languageCode of ["en", "de", "xx"]) {
      if (codes.includes(languageCode)) {
        expect((await say("Ja", { modelId, languageCode })).written, `${modelId} ${languageCode}`).toBe("Ja");
        continue;
      }
      const { statusCode, body } = await errorOf(say("Ja", { modelId, languageCode }));
      expect(statusCode, `${modelId} ${languageCode}`).toBe(400);
      expect(body).toMatchObject({ detail: { status: "unsupported_language", param: "language_code" } });
    }
  }
  const englishOnly = models.filter(({ languages }) => languages?.length === 1).map(({ modelId }) => modelId);
  expect(englishOnly).toEqual(["eleven_flash_v2", "eleven_turbo_v2", "eleven_monolingual_v1"]);
});
