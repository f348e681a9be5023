/** Conformance: what the official client's methods get from the embedded service, validated by the client itself. */
import { ElevenLabs } from "@elevenlabs/elevenlabs-js";
import { unzipSync } from "fflate";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { until } from "../helpers/until.ts";
import { OTHER_VOICE, VOICE } from "./client.ts";
import { bytesOf, errorOf, heardSeconds, isOrderly, type Sdk, sdkFor, startSdk } from "./sdk-client.ts";

const KEY = "the-only-key";
const TEXT = "The quick brown fox paid $20 to Dr. Smith.";
const INPUTS = [
  { text: "Who is there?", voiceId: VOICE },
  { text: "Only the wind.", voiceId: OTHER_VOICE },
  { text: "Then come in.", voiceId: VOICE },
];

let started: Sdk;
beforeAll(async () => {
  started = await startSdk({ key: KEY, faults: true });
});
afterAll(() => started[Symbol.asyncDispose]());

describe("textToSpeech", () => {
  it("convert: audio of each family, and the headers of an answer", async () => {
    const { sdk } = started;
    for (const outputFormat of [
      "mp3_44100_128",
      "wav_24000",
      "opus_48000_64",
      "pcm_8000",
      "ulaw_8000",
    ] as const) {
      const { data, rawResponse } = await sdk.textToSpeech
        .convert(VOICE, { text: TEXT, modelId: "eleven_flash_v2_5", outputFormat })
        .withRawResponse();
      const seconds = heardSeconds(await bytesOf(data), outputFormat);
      expect(seconds).toBeGreaterThan(2);
      expect(seconds).toBeLessThan(8);
      expect(rawResponse.headers.get("content-type")).toMatch(/^audio\//);
      expect(rawResponse.headers.get("character-cost")).toBe(String(TEXT.length / 2));
      expect(rawResponse.headers.get("request-id")).toMatch(/\w+/);
    }
  });

  it("stream: in pieces, as long as convert's, and kept to the byte", async () => {
    const { sdk } = started;
    const request = { text: `${TEXT} `.repeat(8), outputFormat: "pcm_16000" } as const;
    const { data, rawResponse } = await sdk.textToSpeech.stream(VOICE, request).withRawResponse();
    const pieces: Uint8Array[] = [];
    for await (const piece of data) pieces.push(piece);
    expect(pieces.length).toBeGreaterThan(2);
    const streamed = Buffer.concat(pieces);
    const whole = await bytesOf(await sdk.textToSpeech.convert(VOICE, request));
    expect(heardSeconds(streamed, "pcm_16000")).toBeCloseTo(heardSeconds(whole, "pcm_16000"), 1);
    const historyItemIds = [rawResponse.headers.get("history-item-id") ?? ""];
    expect((await bytesOf(await sdk.history.download({ historyItemIds }))).equals(streamed)).toBe(true);
  });

  it("takes every field that the client knows", async () => {
    const { sdk } = started;
    const before = await sdk.textToSpeech.convert(VOICE, { text: "Null." }).withRawResponse();
    await bytesOf(before.data);
    const id = before.rawResponse.headers.get("request-id") ?? "";
    const seconds = async (speed: number) => {
      const stream = await sdk.textToSpeech.convert(VOICE, {
        text: "Eins zwei drei vier fünf sechs.",
        outputFormat: "pcm_16000",
        enableLogging: true,
        optimizeStreamingLatency: 3,
        modelId: "eleven_multilingual_v2",
        languageCode: "de",
        voiceSettings: { stability: 0.4, similarityBoost: 0.9, style: 0.2, useSpeakerBoost: false, speed },
        pronunciationDictionaryLocators: [],
        seed: 7,
        previousText: "Null.",
        nextText: "Sieben.",
        previousRequestIds: [id, id, id],
        nextRequestIds: [],
        usePvcAsIvc: false,
        applyTextNormalization: "auto",
        applyLanguageTextNormalization: false,
      });
      return heardSeconds(await bytesOf(stream), "pcm_16000");
    };
    expect(await seconds(0.7)).toBeGreaterThan((await seconds(1.2)) * 1.4);
  });

  it("convertWithTimestamps: each character of the text and of what was said", async () => {
    const { audioBase64, alignment, normalizedAlignment } =
      await started.sdk.textToSpeech.convertWithTimestamps(VOICE, { text: TEXT, outputFormat: "wav_16000" });
    const seconds = heardSeconds(Buffer.from(audioBase64, "base64"), "wav_16000");
    expect(alignment?.characters.join("")).toBe(TEXT);
    expect(normalizedAlignment?.characters.join("")).toContain("twenty");
    for (const one of [alignment, normalizedAlignment]) {
      expect(isOrderly(one)).toBe(true);
      expect(one?.characterEndTimesSeconds.at(-1)).toBeLessThanOrEqual(seconds + 0.05);
      expect(one?.characterEndTimesSeconds.at(-1)).toBeGreaterThan(seconds * 0.8);
    }
  });

  it("streamWithTimestamps: the lines make up the whole, the last one too", async () => {
    const text = `${TEXT} `.repeat(5).trim();
    const stream = await started.sdk.textToSpeech.streamWithTimestamps(VOICE, {
      text,
      outputFormat: "pcm_16000",
    });
    const audio: Buffer[] = [];
    const all: ElevenLabs.CharacterAlignmentResponseModel = {
      characters: [],
      characterStartTimesSeconds: [],
      characterEndTimesSeconds: [],
    };
    for await (const { audioBase64, alignment } of stream) {
      audio.push(Buffer.from(audioBase64, "base64"));
      all.characters.push(...(alignment?.characters ?? []));
      all.characterStartTimesSeconds.push(...(alignment?.characterStartTimesSeconds ?? []));
      all.characterEndTimesSeconds.push(...(alignment?.characterEndTimesSeconds ?? []));
    }
    expect(audio.length).toBeGreaterThan(2);
    expect(all.characters.join("")).toBe(text);
    expect(isOrderly(all)).toBe(true);
    const seconds = heardSeconds(Buffer.concat(audio), "pcm_16000");
    expect(all.characterEndTimesSeconds.at(-1)).toBeLessThanOrEqual(seconds + 0.05);
    expect(all.characterEndTimesSeconds.at(-1)).toBeGreaterThan(seconds * 0.9);
  });

  it("a stream that is aborted costs nothing any more", async () => {
    const { sdk, http } = started;
    const controller = new AbortController();
    const stream = await sdk.textToSpeech.stream(
      VOICE,
      { text: `${TEXT} `.repeat(200), outputFormat: "pcm_48000" },
      { abortSignal: controller.signal },
    );
    await stream.getReader().read();
    expect(http.service.stats().jobs_active).toBe(1);
    controller.abort();
    await until("the job is gone", () => http.service.stats().jobs_active === 0);
  });

  it("is tried again by the client after a 429 and billed once", async () => {
    const { sdk, http } = started;
    await fetch(`${http.service.url}/service/faults`, {
      method: "PUT",
      headers: { "content-type": "application/json", "xi-api-key": KEY },
      body: JSON.stringify({ faults: [{ kind: "status", status: 429, times: 1, retry_after: 1 }] }),
    });
    const before = (await sdk.history.list({ pageSize: 1 })).history[0];
    const bytes = await bytesOf(await sdk.textToSpeech.convert(VOICE, { text: TEXT }));
    await fetch(`${http.service.url}/service/faults`, { method: "DELETE", headers: { "xi-api-key": KEY } });
    expect(heardSeconds(bytes, "mp3_44100_128")).toBeGreaterThan(2);
    const after = (await sdk.history.list({ pageSize: 1 })).history[0];
    expect(after?.text).toBe(TEXT);
    expect(after?.characterCountChangeFrom).toBe(before?.characterCountChangeTo);
    expect(after?.characterCountChangeTo).toBe((before?.characterCountChangeTo ?? 0) + TEXT.length);
  });
});

describe("textToDialogue", () => {
  it("convert and stream: as long as one another, longer than a line alone", async () => {
    const { textToDialogue, textToSpeech } = started.sdk;
    const request = { inputs: INPUTS, outputFormat: "pcm_16000" } as const;
    const whole = await bytesOf(
      await textToDialogue.convert({ ...request, settings: { stability: 0.5 }, seed: 3 }),
    );
    const streamed = await bytesOf(await textToDialogue.stream(request));
    expect(heardSeconds(streamed, "pcm_16000")).toBeCloseTo(heardSeconds(whole, "pcm_16000"), 1);
    const [line] = INPUTS;
    const one = await textToSpeech.convert(VOICE, { text: line?.text ?? "", outputFormat: "pcm_16000" });
    expect(heardSeconds(whole, "pcm_16000")).toBeGreaterThan(
      heardSeconds(await bytesOf(one), "pcm_16000") * 2,
    );
  });

  it("convertWithTimestamps: a segment for each line, which says where its characters are", async () => {
    const said = await started.sdk.textToDialogue.convertWithTimestamps({
      inputs: INPUTS,
      outputFormat: "pcm_16000",
    });
    const seconds = heardSeconds(Buffer.from(said.audioBase64, "base64"), "pcm_16000");
    expect(isOrderly(said.alignment)).toBe(true);
    checkSegments(said.voiceSegments, said.alignment?.characters ?? [], seconds);
  });

  it("streamWithTimestamps: the same line by line", async () => {
    const stream = await started.sdk.textToDialogue.streamWithTimestamps({
      inputs: INPUTS,
      outputFormat: "pcm_16000",
    });
    const audio: Buffer[] = [];
    const characters: string[] = [];
    const said = INPUTS.map(() => "");
    let endSeconds = 0;
    for await (const chunk of stream) {
      audio.push(Buffer.from(chunk.audioBase64, "base64"));
      characters.push(...(chunk.alignment?.characters ?? []));
      for (const segment of chunk.voiceSegments) {
        const { dialogueInputIndex: index, characterStartIndex, characterEndIndex } = segment;
        expect(segment.voiceId).toBe(INPUTS[index]?.voiceId);
        // Indices count through the whole response, as times do.
        said[index] += characters.slice(characterStartIndex, characterEndIndex).join("");
        endSeconds = segment.endTimeSeconds;
      }
    }
    const seconds = heardSeconds(Buffer.concat(audio), "pcm_16000");
    expect(said).toEqual(INPUTS.map((input) => input.text));
    expect(characters.join("")).toBe(INPUTS.map((input) => input.text).join(""));
    expect(Math.abs(endSeconds - seconds)).toBeLessThan(0.5);
  });
});

function checkSegments(
  segments: readonly ElevenLabs.VoiceSegment[],
  characters: string[],
  seconds: number,
): void {
  expect(segments.map((segment) => segment.dialogueInputIndex)).toEqual([0, 1, 2]);
  for (const [index, segment] of segments.entries()) {
    expect(segment.voiceId).toBe(INPUTS[index]?.voiceId);
    expect(segment.startTimeSeconds).toBeGreaterThanOrEqual(segments[index - 1]?.endTimeSeconds ?? 0);
    expect(segment.endTimeSeconds).toBeGreaterThan(segment.startTimeSeconds);
    expect(segment.endTimeSeconds).toBeLessThanOrEqual(seconds + 0.05);
    const said = characters.slice(segment.characterStartIndex, segment.characterEndIndex);
    expect(said.join("")).toBe(INPUTS[index]?.text);
  }
}

describe("history", () => {
  it("get, getAudio, delete: what was just said", async () => {
    const { history, textToSpeech } = started.sdk;
    const { data, rawResponse } = await textToSpeech.convert(VOICE, { text: "Keep this." }).withRawResponse();
    const said = await bytesOf(data);
    const id = rawResponse.headers.get("history-item-id") ?? "";
    const item = await history.get(id);
    expect(item).toMatchObject({
      historyItemId: id,
      requestId: rawResponse.headers.get("request-id"),
      text: "Keep this.",
      voiceId: VOICE,
      voiceCategory: "premade",
      modelId: "eleven_multilingual_v2",
      source: "TTS",
      contentType: "audio/mpeg",
      outputFormat: "mp3_44100_128",
    });
    expect(item.alignments?.alignment.characters.join("")).toBe("Keep this.");
    expect((await bytesOf(await history.getAudio(id))).equals(said)).toBe(true);
    expect(await history.delete(id)).toEqual({ status: "ok" });
    expect((await errorOf(history.get(id))).statusCode).toBe(404);
  });

  it("list: pages and filters", async () => {
    measures("GET /v1/history", "sort_direction", "the order of the items");
    measures("GET /v1/history", "date_after_unix", "which items are listed");
    const { history, textToSpeech, textToDialogue } = started.sdk;
    for (const text of ["Sea one.", "Sea two.", "Sea three."])
      await bytesOf(await textToSpeech.convert(VOICE, { text }));
    await bytesOf(await textToDialogue.convert({ inputs: INPUTS }));
    const texts: (string | undefined)[] = [];
    let startAfterHistoryItemId: string | undefined;
    for (let hasMore = true; hasMore; ) {
      const page = await history.list({
        pageSize: 2,
        search: "sea",
        source: "TTS",
        voiceId: VOICE,
        sortDirection: "asc",
        ...(startAfterHistoryItemId === undefined ? {} : { startAfterHistoryItemId }),
      });
      texts.push(...page.history.map((item) => item.text));
      startAfterHistoryItemId = page.lastHistoryItemId;
      hasMore = page.hasMore;
    }
    expect(texts).toEqual(["Sea one.", "Sea two.", "Sea three."]);
    const [newest] = (await history.list({ pageSize: 1 })).history;
    expect(newest?.dialogue?.map((line) => line.text)).toEqual(INPUTS.map((input) => input.text));
    const { dateUnix = 0 } = newest ?? {};
    expect((await history.list({ dateAfterUnix: dateUnix + 1 })).history).toEqual([]);
    expect((await history.list({ dateBeforeUnix: dateUnix + 1 })).history.length).toBeGreaterThan(3);
  });

  it("download: one as its audio, several as a zip, another format as BadRequestError", async () => {
    const { history, textToSpeech } = started.sdk;
    const ids: string[] = [];
    for (const text of ["For the first file.", "For the second file."]) {
      const { data, rawResponse } = await textToSpeech.convert(VOICE, { text }).withRawResponse();
      await bytesOf(data);
      ids.push(rawResponse.headers.get("history-item-id") ?? "");
    }
    const wav = await bytesOf(
      await history.download({ historyItemIds: ids.slice(0, 1), outputFormat: "wav" }),
    );
    expect(wav.toString("latin1", 0, 4)).toBe("RIFF");
    expect(heardSeconds(wav, "wav_44100")).toBeGreaterThan(0.8);
    const files = Object.values(unzipSync(await bytesOf(await history.download({ historyItemIds: ids }))));
    expect(files).toHaveLength(2);
    for (const file of files) expect(heardSeconds(file, "mp3_44100_128")).toBeGreaterThan(0.8);
    const refused = await errorOf(history.download({ historyItemIds: ids, outputFormat: "flac" }));
    expect(refused).toBeInstanceOf(ElevenLabs.BadRequestError);
    expect(refused.body).toMatchObject({ error: "invalid_output_format", message: expect.any(String) });
  });
});

describe("voices and models", () => {
  it("voices.getAll, get and search agree", async () => {
    const { voices } = started.sdk;
    const all = (await voices.getAll()).voices;
    expect(all.length).toBeGreaterThan(10);
    const one = await voices.get(VOICE);
    expect(one).toEqual(all.find((voice) => voice.voiceId === VOICE));
    expect(one).toMatchObject({ voiceId: VOICE, category: "premade", labels: { gender: "female" } });
    const seen: string[] = [];
    let nextPageToken: string | undefined;
    do {
      const page = await voices.search({
        pageSize: 7,
        sort: "name",
        ...(nextPageToken ? { nextPageToken } : {}),
      });
      expect(page.totalCount).toBe(all.length);
      seen.push(...page.voices.map((voice) => voice.voiceId));
      nextPageToken = page.nextPageToken;
    } while (nextPageToken);
    expect(seen.toSorted()).toEqual(all.map((voice) => voice.voiceId).toSorted());
    const named = await voices.search({
      voiceIds: [VOICE, OTHER_VOICE],
      voiceType: "default",
      category: "premade",
    });
    expect(named.voices.map((voice) => voice.voiceId).toSorted()).toEqual([VOICE, OTHER_VOICE].toSorted());
  });

  it("models.list has every default of the client's methods that speak", async () => {
    const models = await started.sdk.models.list();
    const speaking = models.filter((model) => model.canDoTextToSpeech).map((model) => model.modelId);
    for (const id of ["eleven_multilingual_v2", "eleven_flash_v2_5", "eleven_v3"])
      expect(speaking).toContain(id);
    const converting = models.filter((model) => model.canDoVoiceConversion).map((model) => model.modelId);
    expect(converting).toContain("eleven_english_sts_v2");
    for (const model of models) {
      expect(model.maximumTextLengthPerRequest).toBeGreaterThanOrEqual(5000);
      expect(model.languages?.length).toBeGreaterThan(0);
    }
  });
});

describe("errors", () => {
  it("422 is an UnprocessableEntityError with pydantic's list", async () => {
    const { textToSpeech, history } = started.sdk;
    const refused = await errorOf(
      textToSpeech.convert(VOICE, { text: "Hi.", voiceSettings: { stability: 5 } }),
    );
    expect(refused).toBeInstanceOf(ElevenLabs.UnprocessableEntityError);
    expect(refused.statusCode).toBe(422);
    expect(refused.body).toMatchObject({
      detail: [{ type: "less_than_equal", loc: ["body", "voice_settings", "stability"], input: 5 }],
    });
    expect(await errorOf(history.list({ pageSize: 1001 }))).toBeInstanceOf(
      ElevenLabs.UnprocessableEntityError,
    );
  });

  it("the others are ElevenLabsErrors with their status and detail", async () => {
    const { sdk, http } = started;
    const cases: [() => PromiseLike<unknown>, number, string][] = [
      [() => sdk.textToSpeech.stream("nobody", { text: "Hi." }), 404, "voice_not_found"],
      [() => sdk.voices.get("nobody"), 404, "voice_not_found"],
      [() => sdk.history.get("nothing"), 404, "history_item_not_found"],
      [() => sdk.history.getAudio("nothing"), 404, "history_item_not_found"],
      [() => sdk.history.delete("nothing"), 404, "history_item_not_found"],
      [() => sdk.history.download({ historyItemIds: ["nothing"] }), 404, "history_item_not_found"],
      [() => sdk.textToSpeech.convert(VOICE, { text: " " }), 400, "empty_text"],
      [
        () => sdk.textToSpeech.convertWithTimestamps(VOICE, { text: "Hi.", modelId: "none" }),
        400,
        "unsupported_model",
      ],
      [() => sdk.textToDialogue.streamWithTimestamps({ inputs: [] }), 400, "invalid_parameters"],
      [() => sdkFor(http.service.url, "wrong").voices.getAll(), 401, "unauthorized"],
      [
        () => sdkFor(http.service.url, "wrong").textToSpeech.stream(VOICE, { text: "Hi." }),
        401,
        "unauthorized",
      ],
    ];
    for (const [call, status, code] of cases) {
      const refused = await errorOf(call());
      expect(refused.statusCode).toBe(status);
      expect(refused.body).toMatchObject({ detail: { code } });
      const { request_id } = (refused.body as { detail: { request_id: string } }).detail;
      expect(refused.rawResponse?.headers.get("x-trace-id")).toBe(request_id);
    }
  });

  it("403 for a format above the plan", async () => {
    await using free = await startSdk({ tier: "free" });
    const refused = await errorOf(
      free.sdk.textToSpeech.convert(VOICE, { text: "Hi.", outputFormat: "pcm_44100" }),
    );
    expect(refused.statusCode).toBe(403);
    expect(refused.body).toMatchObject({ detail: { status: "output_format_not_allowed" } });
  });
});
