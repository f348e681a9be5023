/** The vendor's own client against the embedded service, and what is asked of its answers. */
import { type ElevenLabs, ElevenLabsClient, ElevenLabsError } from "@elevenlabs/elevenlabs-js";
import type { ServiceOptions } from "../../src/service/service.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";
import { type Client, decode, loudness, startClient } from "./client.ts";

export interface Sdk extends AsyncDisposable {
  readonly sdk: ElevenLabsClient;
  readonly http: Client;
}

/** With VOICEWIRE_SDK_THROUGH=gateway (sdk-proxied.test.ts) there is a gateway between both, which has the key. */
export async function startSdk(options: Partial<ServiceOptions> = {}): Promise<Sdk> {
  const http = await startClient(options);
  const key = options.key ?? "any-key";
  const gateway =
    process.env.VOICEWIRE_SDK_THROUGH === "gateway"
      ? await gatewayAt(http.service.url, {}, { upstreamKey: key })
      : null;
  const sdk = sdkFor(gateway?.url ?? http.service.url, gateway === null ? key : "not-the-key");
  const close = async (): Promise<void> => {
    await gateway?.close();
    await http[Symbol.asyncDispose]();
  };
  return { sdk, http, [Symbol.asyncDispose]: close };
}

export function sdkFor(baseUrl: string, apiKey: string): ElevenLabsClient {
  return new ElevenLabsClient({ apiKey, baseUrl, timeoutInSeconds: 30 });
}

export async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  return Buffer.from(await new Response(stream).arrayBuffer());
}

/** Seconds of audio that can be heard; 0 for silence and for what is no audio. */
export function heardSeconds(bytes: Uint8Array, format: string): number {
  const samples = decode(bytes, format);
  return loudness(samples) > 300 ? samples.length / 16_000 : 0;
}

/** The error that the call ends with; it must be one of the client's own kind. */
export async function errorOf(call: PromiseLike<unknown>): Promise<ElevenLabsError> {
  try {
    await call;
  } catch (thrown) {
    if (thrown instanceof ElevenLabsError) return thrown;
    throw thrown;
  }
  throw new Error("Expected a refusal");
}

/** Whether times rise, none ends before it starts, and the three lists are of one length. */
export function isOrderly(alignment: ElevenLabs.CharacterAlignmentResponseModel | undefined): boolean {
  if (alignment === undefined) return false;
  const { characters, characterStartTimesSeconds: starts, characterEndTimesSeconds: ends } = alignment;
  if (characters.length === 0 || starts.length !== characters.length || ends.length !== characters.length) {
    return false;
  }
  return starts.every((start, index) => start >= (starts[index - 1] ?? 0) && (ends[index] ?? -1) >= start);
}
