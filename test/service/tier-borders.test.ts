/** Which output format a subscription tier has: the tiers on both sides of each border, wherever audio is made. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TIERS } from "../../src/service/http/tiers.ts";
import { encodeWavFile } from "../kit/wav-file.ts";
import { type Client, decode, loudness, OTHER_VOICE, startClient, VOICE } from "./client.ts";

/** The lowest tier that has the format. */
const LOWEST = {
  mp3_44100_192: "creator",
  pcm_44100: "pro",
  wav_44100: "pro",
  mp3_44100_128: "free",
} as const;
type Format = keyof typeof LOWEST;
const TEXT = "Borders.";
const RATE = 24_000;

describe.each(["starter", "creator", "pro"] as const)("tier %s", { timeout: 60_000 }, (tier) => {
  let client: Client;
  let recording: Blob;

  beforeAll(async () => {
    client = await startClient({ tier });
    const said = await client.post(`/v1/text-to-speech/${VOICE}?output_format=pcm_24000`, { text: TEXT });
    const pcm = new Int16Array(new Uint8Array(said.body).buffer);
    recording = new Blob([new Uint8Array(encodeWavFile(pcm, RATE))]);
  });
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
  });

  const speech = (path: string, body: object) => async (format: string) => {
    const { status, body: bytes } = await client.post(`${path}?output_format=${format}`, body);
    return { status, bytes };
  };
  const convert = (path: string) => async (format: string) => {
    const form = new FormData();
    form.append("audio", recording, "a.wav");
    const url = `${client.service.url}/v1/speech-to-speech/${OTHER_VOICE}${path}?output_format=${format}`;
    const answer = await fetch(url, { method: "POST", body: form });
    return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) };
  };
  const inputs = [
    { text: TEXT, voice_id: VOICE },
    { text: TEXT, voice_id: OTHER_VOICE },
  ];
  const said = { text: TEXT };
  const endpoints = {
    "text to speech": speech(`/v1/text-to-speech/${VOICE}`, said),
    "text to speech, streamed": speech(`/v1/text-to-speech/${VOICE}/stream`, said),
    "text to dialogue": speech("/v1/text-to-dialogue", { inputs }),
    "text to dialogue, streamed": speech("/v1/text-to-dialogue/stream", { inputs }),
    "speech to speech": convert(""),
    "speech to speech, streamed": convert("/stream"),
  };

  it.each(Object.entries(endpoints))(
    "%s: has the formats of the tier, and refuses the others",
    async (name, ask) => {
      for (const [format, lowest] of Object.entries(LOWEST) as [Format, (typeof LOWEST)[Format]][]) {
        // Streams have no WAV on any tier.
        if (format === "wav_44100" && name.endsWith("streamed")) continue;
        const { status, bytes } = await ask(format);
        const isAllowed = TIERS.indexOf(tier) >= TIERS.indexOf(lowest);
        expect(status, format).toBe(isAllowed ? 200 : 403);
        if (isAllowed) {
          expect(loudness(decode(bytes, format)), format).toBeGreaterThan(300);
          continue;
        }
        const plan = lowest === "pro" ? "Pro" : "Creator";
        expect(JSON.parse(bytes.toString()), format).toMatchObject({
          detail: {
            code: "subscription_required",
            status: "output_format_not_allowed",
            message: `The output_format '${format}' is only allowed on the ${plan} tier and above.`,
            param: "output_format",
          },
        });
      }
    },
  );
});
