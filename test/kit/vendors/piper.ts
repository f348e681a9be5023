/** Piper's HTTP server, scripted: POST /synthesize, a whole WAV at the voice's rate, made before anything is sent. */
import { wavHeader } from "../../../src/audio/containers/wav.ts";
import type { FakeScript, FakeStep } from "../../helpers/fake-answer.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { htmlPage, jsonError } from "./timed-steps.ts";

export const PIPER_VOICE = "en_US-lessac-medium";
export const PIPER_RATE = 22_050;

export type PiperFault = "html under 200" | "empty" | "header alone" | "stall" | "cut file" | "fails";

export function piper({ fault }: { readonly fault?: PiperFault } = {}): FakeScript {
  return (request) => {
    if (request.path === "/voices") return jsonError(200, { [PIPER_VOICE]: {} });
    const strict = new Strict(request)
      .header("content-type", "application/json")
      .fields(request.json, "body", {
        text: "string",
        "voice?": "string",
        "speaker?": "string",
        "length_scale?": "number",
      });
    const body = request.json as { readonly text: string } | undefined;
    const isRefused =
      request.path !== "/synthesize" || strict.fault !== undefined || body?.text.trim() === "";
    if (isRefused || fault === "fails") return { ...htmlPage(), status: 500 };
    if (fault === "html under 200") return htmlPage();
    const samples = bytesOf(speak(body?.text ?? "", { sampleRate: PIPER_RATE }).pcm);
    const file = Buffer.concat([wavHeader({ sampleRate: PIPER_RATE, dataBytes: samples.length }), samples]);
    return { headers: { "content-type": "audio/wav" }, body: [{ afterMs: 50 }, ...sentOf(file, fault)] };
  };
}

function sentOf(file: Buffer, fault: PiperFault | undefined): FakeStep[] {
  switch (fault) {
    case "empty":
      return [];
    case "header alone":
      return [file.subarray(0, 44)];
    case "stall":
      return [file.subarray(0, 1000), "stall"];
    case "cut file":
      return [file.subarray(0, file.length - 1000)];
    default:
      return [file];
  }
}
