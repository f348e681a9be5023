import { describe, expect, it } from "vitest";
import { isStreamFormat, STREAM_FORMATS } from "../../../../src/audio/formats.ts";
import { GatewayError } from "../../../../src/errors.ts";
import { closeReason, fault, faultOf } from "../../../../src/protocol/elevenlabs/socket-faults.ts";
import {
  maxVoices,
  parseSocketSettings,
  type SocketKind,
} from "../../../../src/protocol/elevenlabs/socket-settings.ts";

const parse = (query: string, kind: SocketKind = "speech") =>
  parseSocketSettings(new URLSearchParams(query), kind, isStreamFormat);

describe("parseSocketSettings", () => {
  it("has the vendor's defaults", () => {
    expect(parse("")).toEqual({
      modelId: "eleven_multilingual_v2",
      outputFormat: "mp3_44100_128",
      languageCode: undefined,
      seed: undefined,
      enableLogging: undefined,
      applyTextNormalization: undefined,
      applyLanguageTextNormalization: undefined,
      hasSsml: false,
      isSynced: false,
      isAuto: false,
      idleMs: 20_000,
      isAbsolute: false,
    });
    expect(parse("", "dialogue")).toMatchObject({
      modelId: "eleven_v3_conversational",
      applyTextNormalization: "off",
      idleMs: 20_000,
    });
  });

  it("takes every format of Set A and the old name of the default", () => {
    for (const name of STREAM_FORMATS) expect(parse(`output_format=${name}`).outputFormat).toBe(name);
    expect(parse("output_format=mp3_44100").outputFormat).toBe("mp3_44100_128");
  });

  it("reads booleans as pydantic does, and empty parameters as absent ones", () => {
    for (const yes of ["true", "True", "1", "yes", "on"]) expect(parse(`auto_mode=${yes}`).isAuto).toBe(true);
    for (const no of ["false", "0", "no", "off", ""]) expect(parse(`auto_mode=${no}`).isAuto).toBe(false);
    expect(parse("model_id=&output_format=&seed=&language_code=")).toEqual(parse(""));
  });

  it("an idle time over 180 s is 180 s; a dialogue's can't be set", () => {
    expect(parse("inactivity_timeout=60").idleMs).toBe(60_000);
    expect(parse("inactivity_timeout=9999").idleMs).toBe(180_000);
    expect(parse("inactivity_timeout=60", "dialogue").idleMs).toBe(20_000);
  });

  it.each([
    ["model_id=eleven_v3", "speech", "model_id"],
    ["model_id=eleven_v3_conversational", "speech", "model_id"],
    ["model_id=eleven_multilingual_v2", "dialogue", "model_id"],
    ["model_id=a%20b", "speech", "model_id"],
    [`language_code=${"x".repeat(200)}`, "speech", "language_code"],
    ["output_format=pcm_1", "speech", "output_format"],
    ["seed=4294967296", "speech", "seed"],
    ["seed=1.5", "speech", "seed"],
    ["inactivity_timeout=0", "speech", "inactivity_timeout"],
    ["enable_logging=2", "speech", "enable_logging"],
    ["apply_text_normalization=auto", "dialogue", "apply_text_normalization"],
  ] as const)("%s on %s is refused with the parameter's name", (query, kind, field) => {
    expect(() => parse(query, kind)).toThrow(expect.objectContaining({ code: "invalid_field", field }));
  });

  it("counts the voices that a model takes", () => {
    expect(["eleven_v3", "eleven_v3_conversational", "eleven_v4", "eleven_v4_turbo"].map(maxVoices)).toEqual([
      10, 1, 10, 1,
    ]);
  });
});

describe("faults", () => {
  it("a close reason has at most 123 bytes, in whole characters", () => {
    for (const message of ["short", "é".repeat(200), "😀".repeat(80), `${"x".repeat(121)}😀`]) {
      const reason = closeReason(fault("e", message));
      expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(123);
      expect(message.startsWith(reason)).toBe(true);
      expect(reason).not.toMatch(/[\ud800-\udbff]$/);
    }
    expect(closeReason(fault("e", "short"))).toBe("short");
  });

  it("every error of ours has a word, and 1008", () => {
    for (const code of ["internal", "upstream_timeout", "encoder_failed", "draining"] as const) {
      expect(faultOf(new GatewayError(code, "m"))).toMatchObject({
        error: "internal_error",
        code: 1008,
      });
    }
    expect(faultOf(new GatewayError("upstream_busy", "m")).error).toBe("system_busy");
    expect(faultOf(new GatewayError("unknown_voice", "m"), ["v".repeat(100)]).message).toBe(
      `A voice with voice_id ${"v".repeat(64)} does not exist.`,
    );
  });
});
