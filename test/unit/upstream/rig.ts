/** A client with small bounds, the usual request, and a recorder of what the handlers of a synthesis got. */
import type { GatewayError } from "../../../src/errors.ts";
import { createUpstream, type UpstreamOptions } from "../../../src/upstream/regional-upstream.ts";
import type {
  SpeechRequest,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisHead,
} from "../../../src/upstream/types.ts";
import type { UpstreamClient } from "../../../src/upstream/upstream-client.ts";
import { until } from "../../helpers/until.ts";

export const SPEECH: SpeechRequest = {
  kind: "speech",
  voiceId: "tone-a",
  text: "Hello there, you.",
  outputFormat: "ulaw_8000",
  wantsTiming: true,
};
export const RAW_SPEECH: SpeechRequest = { ...SPEECH, wantsTiming: false };

export function clientOf(
  baseUrl: string | readonly string[],
  more: Partial<UpstreamOptions> = {},
): UpstreamClient & AsyncDisposable {
  // A refusal is reported at once: who is asked again is another test's business.
  const bounds = { maxConnections: 16, maxQueued: 64, timeoutMs: 10_000, patienceMs: 0, failoverMs: 4000 };
  const client = createUpstream({ baseUrl, key: "", ...bounds, ...more });
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

/** Where nobody listens, and nobody can come to listen while a test runs: `port` 1 to 6. */
export function nobody(port = 1): { readonly url: string } {
  return { url: `http://127.0.0.1:${port}` };
}

/** Lets everything run that is already due: a few turns of the event loop. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

export class Recorder implements SynthesisHandlers {
  readonly calls: string[] = [];
  readonly chunks: SynthesisChunk[] = [];
  heads: SynthesisHead[] = [];
  failure: GatewayError | null = null;
  isEnded = false;
  /** For a test that acts from inside a chunk. */
  onChunk: (() => void) | null = null;

  requestSent(): void {
    this.calls.push("sent");
  }
  requestTurnedAway(): void {
    this.calls.push("turned away");
  }
  head(head: SynthesisHead): void {
    this.calls.push("head");
    this.heads.push(head);
  }
  chunk(chunk: SynthesisChunk): void {
    if (this.calls.at(-1) !== "chunk") this.calls.push("chunk");
    this.chunks.push(chunk);
    this.onChunk?.();
  }
  end(): void {
    this.calls.push("end");
    this.isEnded = true;
  }
  error(error: GatewayError): void {
    this.calls.push(`error ${error.code}`);
    this.failure = error;
  }

  get isOver(): boolean {
    return this.isEnded || this.failure !== null;
  }
  get audio(): Buffer {
    return Buffer.concat(this.chunks.map((chunk) => chunk.audio));
  }
  get bytes(): number {
    return this.chunks.reduce((sum, chunk) => sum + chunk.audio.byteLength, 0);
  }

  async over(): Promise<this> {
    await until("the end or the error of a synthesis", () => this.isOver);
    return this;
  }

  /** The error that it has to end with. */
  async failed(): Promise<GatewayError> {
    await this.over();
    if (this.failure === null) throw new Error("The synthesis ended well, expected an error");
    return this.failure;
  }
}
