/** Piper's HTTP server, scripted: POST /synthesize, a whole WAV at the voice's rate, made before anything is sent. */
import { wavHeader } from "../../../src/audio/containers/wav.ts";
import type { FakeScript } from "../../helpers/fake-answer.ts";
import { bytesOf, speak } from "./spoken.ts";
import { Strict } from "./strict.ts";
import { jsonError } from "./timed-steps.ts";

export const PIPER_VOICE = "en_US-lessac-medium";
export const PIPER_RATE = 22_050;

export function piper({ isCut = false }: { readonly isCut?: boolean } = {}): FakeScript {
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
    if (request.path !== "/synthesize" || strict.fault !== undefined || body?.text.trim() === "") {
      return {
        status: 500,
        headers: { "content-type": "text/html" },
        body: ["<html>Internal Server Error</html>"],
      };
    }
    const samples = bytesOf(speak(body?.text ?? "", { sampleRate: PIPER_RATE }).pcm);
    const file = Buffer.concat([wavHeader({ sampleRate: PIPER_RATE, dataBytes: samples.length }), samples]);
    const sent = isCut ? file.subarray(0, file.length - 1000) : file;
    return { headers: { "content-type": "audio/wav" }, body: [{ afterMs: 50 }, sent] };
  };
}
