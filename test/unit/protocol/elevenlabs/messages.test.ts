import { describe, expect, it } from "vitest";
import { parseDialogueMessage } from "../../../../src/protocol/elevenlabs/dialogue-messages.ts";
import { DIALOGUE_DIALECT, SPEECH_DIALECT } from "../../../../src/protocol/elevenlabs/server-messages.ts";
import { changedOption, parseSpeechMessage } from "../../../../src/protocol/elevenlabs/speech-messages.ts";

const speech = (message: object, isMulti = true) => parseSpeechMessage(JSON.stringify(message), isMulti);

describe("parseSpeechMessage", () => {
  it("reads all that a message can have, in either spelling, and passes over what it does not know", () => {
    const read = speech({
      text: "Hi ",
      contextId: "a",
      flush: true,
      try_trigger_generation: true,
      voice_settings: { stability: 0.1, style: null, unknown: 1 },
      generator_config: { chunk_length_schedule: [50] },
      pronunciation_dictionary_locators: [{ pronunciation_dictionary_id: "d", version_id: null }],
      unknown: {},
    });
    expect(read).toEqual({
      contextId: "a",
      text: "Hi ",
      flush: true,
      closeContext: false,
      closeSocket: false,
      triesToStart: true,
      options: {
        voiceSettings: { stability: 0.1 },
        chunkLengthSchedule: [50],
        locators: [{ pronunciation_dictionary_id: "d" }],
      },
      ignored: ["voice_settings.unknown", "unknown"],
    });
  });

  it("null is as good as absent", () => {
    const nulls = { context_id: null, flush: null, voice_settings: null, generation_config: null };
    expect(speech({ text: "a", ...nulls })).toEqual(speech({ text: "a" }));
    expect(speech({ text: "a", voice_settings: {} })).toEqual(speech({ text: "a" }));
  });

  it("a single socket has no contexts and needs text", () => {
    const message = { text: "a", context_id: "x", close_context: true, close_socket: true };
    expect(speech(message, false)).toMatchObject({ contextId: "", closeContext: false, closeSocket: false });
    expect(() => speech({ flush: true }, false)).toThrow(expect.objectContaining({ code: "invalid_field" }));
    expect(speech({ flush: true }).flush).toBe(true);
  });

  it("does not repeat what was sent in its errors", () => {
    expect(() => speech({ text: { secret: "words" } })).toThrow(/^(?!.*words).*$/);
    expect(() => parseSpeechMessage("secret words", true)).toThrow(/^(?!.*words).*$/);
  });
});

describe("changedOption", () => {
  const options = (given: object) => speech({ text: "a", ...given }).options;
  it("finds what differs, not what is absent or only in another order", () => {
    const first = options({ voice_settings: { stability: 0.1, speed: 1 } });
    expect(changedOption(first, options({}))).toBeUndefined();
    expect(changedOption(first, options({ voice_settings: { speed: 1, stability: 0.1 } }))).toBeUndefined();
    expect(changedOption(first, options({ voice_settings: { speed: 1 } }))).toBe("voice_settings");
    expect(changedOption(options({}), options({ voice_settings: { speed: 1 } }))).toBe("voice_settings");
    expect(changedOption(first, options({ generation_config: { chunk_length_schedule: [60] } }))).toBe(
      "generation_config",
    );
  });
});

describe("parseDialogueMessage", () => {
  it("reads lines, voices and settings", () => {
    const message = {
      context_id: "a",
      voices: ["v"],
      voice_settings: { stability: 0.5 },
      inputs: [
        { text: "Hi ", voice_id: "v" },
        { text: "Ho ", voice_id: "v", new_turn: true },
      ],
      keep_alive: true,
    };
    expect(parseDialogueMessage(JSON.stringify(message), true)).toMatchObject({
      contextId: "a",
      voices: ["v"],
      settings: { stability: 0.5 },
      inputs: [
        { text: "Hi ", voiceId: "v", isNewTurn: false },
        { text: "Ho ", voiceId: "v", isNewTurn: true },
      ],
      flush: false,
    });
  });

  it("needs a context id on the multi endpoint, except to close the socket", () => {
    const parse = (message: object, isMulti: boolean) =>
      parseDialogueMessage(JSON.stringify(message), isMulti);
    expect(() => parse({ flush: true }, true)).toThrow(expect.objectContaining({ field: "context_id" }));
    expect(() => parse({ flush: true, context_id: "" }, true)).toThrow(
      expect.objectContaining({ field: "context_id" }),
    );
    expect(parse({ close_socket: true }, true).contextId).toBeNull();
    expect(parse({ flush: true }, false).contextId).toBe("");
    expect(() => parse({ voices: [], context_id: "a" }, true)).toThrow(
      expect.objectContaining({ field: "voices" }),
    );
  });
});

describe("dialects", () => {
  const timing = { chars: ["a"], startsMs: [0], durationsMs: [9] };
  const message = { audio: new Uint8Array([1, 2]), timing, normalizedTiming: null };

  it("text to speech is camelCase, dialogue snake_case", () => {
    expect(JSON.parse(SPEECH_DIALECT.audio(message, "c"))).toEqual({
      audio: "AQI=",
      isFinal: null,
      alignment: { chars: ["a"], charStartTimesMs: [0], charDurationsMs: [9] },
      normalizedAlignment: null,
      contextId: "c",
      context_id: "c",
    });
    expect(JSON.parse(DIALOGUE_DIALECT.audio(message, "c"))).toEqual({
      audio: "AQI=",
      alignment: { chars: ["a"], char_start_times_ms: [0], char_durations_ms: [9] },
      normalized_alignment: null,
      context_id: "c",
    });
    expect(SPEECH_DIALECT.flushed("c")).toBeNull();
    expect(
      JSON.parse(DIALOGUE_DIALECT.fault({ error: "e", message: "m", code: 1008, param: "p" }, "")),
    ).toEqual({
      error: "e",
      message: "m",
      code: 1008,
      param: "p",
    });
  });

  it("a message without audio says null", () => {
    const empty = { ...message, audio: new Uint8Array(0) };
    expect(JSON.parse(SPEECH_DIALECT.audio(empty, ""))).toMatchObject({ audio: null });
  });
});
