/** `x-voicewire-ahead-ms` reaches the job that speaks, and nothing else does. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../src/errors.ts";
import { registerTextToDialogue } from "../../src/service/http/speech/text-to-dialogue.ts";
import { registerTextToSpeech } from "../../src/service/http/speech/text-to-speech.ts";
import type { JobSpec } from "../../src/service/voice/messages.ts";
import { measures } from "../helpers/measures.ts";
import { mount } from "./mounted.ts";

const VOICE = "21m00Tcm4TlvDq8ikWAM";

describe.each([
  ["text-to-speech", `/v1/text-to-speech/${VOICE}/stream`, { text: "Hello." }],
  ["text-to-dialogue", "/v1/text-to-dialogue/stream", { inputs: [{ text: "Hello.", voice_id: VOICE }] }],
])("%s", (_name, path, body) => {
  it.each([
    ["0", 0],
    ["3500", 3500],
    [undefined, undefined],
    ["-1", undefined],
    ["1e3", undefined],
    ["1000000", undefined],
    ["soon", undefined],
  ])("takes x-voicewire-ahead-ms %s as %s", async (header, aheadMs) => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "x-voicewire-ahead-ms",
      "how soon the speech is needed, for its turn",
    );
    measures(
      "POST /v1/text-to-dialogue",
      "x-voicewire-ahead-ms",
      "how soon the speech is needed, for its turn",
    );
    const specs: JobSpec[] = [];
    const open = (spec: JobSpec): never => {
      specs.push(spec);
      throw new GatewayError("queue_full", "Nothing is said here");
    };
    await using mounted = await mount({}, (section, context) => {
      const recording = { ...context, voices: { open } };
      registerTextToSpeech(section, recording);
      registerTextToDialogue(section, recording);
    });
    await fetch(mounted.url + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(header === undefined ? {} : { "x-voicewire-ahead-ms": header }),
      },
      body: JSON.stringify(body),
    });
    expect(specs.map((spec) => spec.aheadMs)).toEqual([aheadMs]);
  });
});
