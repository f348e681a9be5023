/**
 * Stands between gateway and embedded service: asks the service for the truth of every answer and keeps it, passes the
 * answer on as it is, and puts a scripted fault on requests. A request is known again by its `seed`.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Alignment } from "../../src/timing/alignment.ts";

/** What one answer really said. */
export interface TrueResponse {
  readonly text: string;
  readonly format: string;
  /** Audio as it was sent, faults and all. */
  readonly audio: Buffer;
  /** UTF-16 offset in `text`, and the times in the answer's audio, of each of its characters. */
  readonly characters: readonly TrueCharacter[];
  /** Where the engine began to say something; several may have one offset. */
  readonly words: readonly { readonly offset: number; readonly startMs: number }[];
}

export interface TrueCharacter {
  readonly offset: number;
  readonly startMs: number;
  readonly endMs: number;
}

interface Line {
  readonly audio_base64: string;
  readonly alignment: Alignment | null;
  readonly voicewire_alignment?: Alignment | null;
  readonly voicewire_words?: readonly {
    readonly character_index: number;
    readonly start_time_seconds: number;
  }[];
}

interface Exchange {
  readonly text: string;
  readonly format: string;
  readonly pieces: Buffer[];
}

export class TruthProxy implements AsyncDisposable {
  readonly #serviceUrl: string;
  readonly #faultOf: (seed: number) => string;
  readonly #exchanges = new Map<number, Exchange[]>();
  readonly #server = createServer((incoming, outgoing) => void this.#pass(incoming, outgoing));

  private constructor(serviceUrl: string, faultOf: (seed: number) => string) {
    this.#serviceUrl = serviceUrl;
    this.#faultOf = faultOf;
  }

  /** `faultOf`: the value of x-voicewire-fault for requests with this seed; empty = none. */
  static async start(serviceUrl: string, faultOf: (seed: number) => string): Promise<TruthProxy> {
    const proxy = new TruthProxy(serviceUrl, faultOf);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The answers to the requests with this seed, in order, as far as they have come; then they are forgotten. */
  take(seed: number): TrueResponse[] {
    const exchanges = this.#exchanges.get(seed) ?? [];
    this.#exchanges.delete(seed);
    return exchanges.map(responseOf);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => {
      this.#server.closeAllConnections();
      this.#server.close(() => resolve());
    });
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const { headers, exchange } = this.#extras(incoming, body);
    const { method } = incoming;
    const options = {
      method,
      headers: { ...incoming.headers, ...headers, host: new URL(this.#serviceUrl).host },
    };
    const onward = request(`${this.#serviceUrl}${incoming.url ?? "/"}`, options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.on("data", (piece: Buffer) => exchange?.pieces.push(piece));
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    onward.end(body);
  }

  /** For a speech request: what it is asked for besides, and where its answer is kept. */
  #extras(incoming: IncomingMessage, body: Buffer): { headers: Record<string, string>; exchange?: Exchange } {
    if (incoming.method !== "POST") return { headers: {} };
    const { seed = 0, text } = JSON.parse(body.toString()) as { seed?: number; text: string };
    const format = new URL(incoming.url ?? "/", "http://proxy").searchParams.get("output_format") ?? "";
    const exchange = { text, format, pieces: [] };
    this.#exchanges.set(seed, [...(this.#exchanges.get(seed) ?? []), exchange]);
    const fault = this.#faultOf(seed);
    const headers = { "x-voicewire-truth": "1", ...(fault === "" ? {} : { "x-voicewire-fault": fault }) };
    return { headers, exchange };
  }
}

function responseOf({ text, format, pieces }: Exchange): TrueResponse {
  const all = Buffer.concat(pieces).toString("utf8").split("\n");
  // The last one is empty, or cut where the request was ended early.
  const lines = all.slice(0, -1).map((line) => JSON.parse(line) as Line);
  const offsets = [0];
  for (const character of text) offsets.push((offsets.at(-1) ?? 0) + character.length);
  const characters: TrueCharacter[] = [];
  for (const line of lines) {
    const alignment = line.voicewire_alignment === undefined ? line.alignment : line.voicewire_alignment;
    for (const [i, start] of (alignment?.character_start_times_seconds ?? []).entries()) {
      const end = alignment?.character_end_times_seconds[i] ?? start;
      characters.push({
        offset: offsets[characters.length] ?? text.length,
        startMs: start * 1000,
        endMs: end * 1000,
      });
    }
  }
  return {
    text,
    format,
    audio: Buffer.concat(lines.map((line) => Buffer.from(line.audio_base64, "base64"))),
    characters,
    words: lines.flatMap((line) =>
      (line.voicewire_words ?? []).map((word) => ({
        offset: offsets[word.character_index] ?? text.length,
        startMs: word.start_time_seconds * 1000,
      })),
    ),
  };
}
