/** A service on a free port and a plain HTTP client for it: what it answered, byte for byte. */
import { execFileSync } from "node:child_process";
import {
  Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
} from "node:http";
import { type RunningService, type ServiceOptions, startService } from "../../src/service/service.ts";
import type { Alignment, VoiceSegment } from "../../src/timing/alignment.ts";

export const VOICE = "21m00Tcm4TlvDq8ikWAM";
export const OTHER_VOICE = "pNInz6obpgDQGcFmaJgB";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface TimedLine {
  readonly audio_base64: string;
  readonly alignment: Alignment | null;
  readonly normalized_alignment: Alignment | null;
  readonly voice_segments?: readonly VoiceSegment[];
  readonly voicewire_alignment?: Alignment | null;
  readonly voicewire_words?: readonly {
    readonly character_index: number;
    readonly start_time_seconds: number;
  }[];
}

export interface Client extends AsyncDisposable {
  readonly service: RunningService;
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Resolves with the answer's head; nothing of the body is read. */
  open(path: string, body: unknown): Promise<IncomingMessage>;
  /** Destroys every request that open() made, answered or not. */
  abortOpenRequests(): void;
}

export async function startClient(options: Partial<ServiceOptions> = {}): Promise<Client> {
  const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, ...options });
  const agent = new Agent({ keepAlive: true });
  const opened: ClientRequest[] = [];
  const open = (method: string, path: string, given: { headers?: object; body?: unknown; agent?: Agent }) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const isRaw = typeof given.body === "string" || given.body instanceof Uint8Array;
      const type = given.body === undefined ? {} : { "content-type": "application/json" };
      const sent = request(service.url + path, {
        method,
        headers: { ...type, ...given.headers },
        ...(given.agent === undefined ? {} : { agent: given.agent }),
      });
      if (given.agent === undefined) opened.push(sent);
      sent.on("response", resolve).on("error", reject);
      sent.end(isRaw ? given.body : given.body === undefined ? undefined : JSON.stringify(given.body));
    });
  const whole = async (method: string, path: string, given: { headers?: object; body?: unknown }) => {
    const message = await open(method, path, { ...given, agent });
    const parts: Buffer[] = [];
    for await (const part of message) parts.push(part as Buffer);
    return { status: message.statusCode ?? 0, headers: message.headers, body: Buffer.concat(parts) };
  };
  return {
    service,
    post: (path, body, headers = {}) => whole("POST", path, { body, headers }),
    get: (path, headers = {}) => whole("GET", path, { headers }),
    open: (path, body) => open("POST", path, { body }),
    abortOpenRequests() {
      for (const sent of opened.splice(0)) sent.destroy();
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await service.close();
    },
  };
}

export function linesOf(body: Buffer): TimedLine[] {
  const text = body.toString("utf8");
  if (!text.endsWith("\n")) throw new Error("The last line does not end");
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as TimedLine);
}

/** Samples at 16 kHz, decoded by ffmpeg; headerless formats are named to it. */
export function decode(bytes: Uint8Array, format: string): Int16Array {
  const [, codec, rate] = /^(pcm|ulaw|alaw)_(\d+)$/.exec(format) ?? [];
  const demuxers: Readonly<Record<string, string>> = { pcm: "s16le", ulaw: "mulaw", alaw: "alaw" };
  const input = codec === undefined ? [] : ["-f", demuxers[codec] ?? "", "-ar", rate ?? "", "-ac", "1"];
  const args = ["-v", "error", ...input, "-i", "pipe:0", "-f", "s16le", "-ac", "1", "-ar", "16000", "pipe:1"];
  const pcm = execFileSync("ffmpeg", args, { input: bytes, maxBuffer: 1 << 28 });
  return new Int16Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + pcm.byteLength));
}

/** Root mean square of samples, full scale 32768. */
export function loudness(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / Math.max(1, samples.length));
}
