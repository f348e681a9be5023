/** What the upstream fixture sends: audio prepared once a format, cut into the chunks of one response. */

/** Loudness of the tone; a silent one would make the gateway look for the first sound all the way. */
const TONE_HZ = 400;
const AMPLITUDE = 8000;

/** Audio of one output format: one chunk's worth, ready to be sent as it is or as base64. */
export class PreparedAudio {
  readonly format: string;
  readonly bytesPerMs: number;
  readonly chunkMs: number;
  readonly chunk: Buffer;
  readonly base64: string;
  /** The whole chunk in HTTP's chunked coding (RFC 9112 section 7.1). */
  readonly framed: Buffer;

  /** Throws for formats other than ulaw_8000 and pcm_*. */
  constructor(format: string, chunkMs: number) {
    const rate = Number(/^(?:ulaw_(8000)|pcm_(\d+))$/.exec(format)?.slice(1).find(Boolean));
    if (!(rate > 0)) throw new Error(`Fixture can't make ${format}: expected ulaw_8000 or pcm_*`);
    const isUlaw = format.startsWith("ulaw");
    this.format = format;
    this.bytesPerMs = (rate * (isUlaw ? 1 : 2)) / 1000;
    this.chunkMs = chunkMs;
    this.chunk = Buffer.alloc(Math.round(chunkMs * this.bytesPerMs));
    const samples = this.chunk.length / (isUlaw ? 1 : 2);
    for (let index = 0; index < samples; index += 1) {
      const sample = Math.round(AMPLITUDE * Math.sin((2 * Math.PI * TONE_HZ * index) / rate));
      if (isUlaw) this.chunk[index] = ulawOf(sample);
      else this.chunk.writeInt16LE(sample, index * 2);
    }
    this.base64 = this.chunk.toString("base64");
    this.framed = Buffer.concat([
      Buffer.from(`${this.chunk.length.toString(16)}\r\n`),
      this.chunk,
      Buffer.from("\r\n"),
    ]);
  }
}

/** One response: its length and key are in the text. */
export class Speech {
  readonly key: string | null;
  readonly head: string;
  readonly #audio: PreparedAudio;
  readonly #text: string;
  readonly #isTimed: boolean;
  readonly #totalMs: number;
  #sentMs = 0;

  constructor(
    audio: PreparedAudio,
    asked: {
      readonly text: string;
      readonly isTimed: boolean;
      readonly msPerChar?: number | undefined;
    },
  ) {
    const match = /^(\d+(?:\.\d+)?)s(?: k(\S+))?/.exec(asked.text);
    this.#audio = audio;
    this.#text = asked.text;
    this.#isTimed = asked.isTimed;
    const untoldMs = asked.msPerChar === undefined ? 1000 : asked.text.length * asked.msPerChar;
    this.#totalMs = match === null ? untoldMs : Number(match[1]) * 1000;
    this.key = match?.[2] ?? null;
    this.head =
      `HTTP/1.1 200 OK\r\ncontent-type: ${asked.isTimed ? "application/json" : "audio/basic"}\r\n` +
      `character-cost: ${asked.text.length}\r\ntransfer-encoding: chunked\r\n\r\n`;
  }

  get isOver(): boolean {
    return this.#sentMs >= this.#totalMs;
  }

  /** The next chunk as it goes on the wire; the last one ends the response. */
  nextChunk(): (Buffer | string)[] {
    const fromMs = this.#sentMs;
    const ms = Math.min(this.#audio.chunkMs, this.#totalMs - fromMs);
    this.#sentMs += ms;
    const pieces: (Buffer | string)[] = this.#isTimed ? [this.#timedLine(fromMs, ms)] : this.#plain(ms);
    if (this.isOver) pieces.push("0\r\n\r\n");
    return pieces;
  }

  #plain(ms: number): (Buffer | string)[] {
    if (ms === this.#audio.chunkMs) return [this.#audio.framed];
    const part = this.#audio.chunk.subarray(0, Math.round(ms * this.#audio.bytesPerMs));
    return part.length === 0 ? [] : [`${part.length.toString(16)}\r\n`, part, "\r\n"];
  }

  /** A line of the stream with timestamps: base64 audio and the alignment of the characters that begin in it, both ways. */
  #timedLine(fromMs: number, ms: number): string {
    const part = this.#audio.chunk.subarray(0, Math.round(ms * this.#audio.bytesPerMs));
    const base64 = ms === this.#audio.chunkMs ? this.#audio.base64 : part.toString("base64");
    const alignment = JSON.stringify(this.#alignment(fromMs, fromMs + ms));
    const line = `{"audio_base64":"${base64}","alignment":${alignment},"normalized_alignment":${alignment}}\n`;
    return `${line.length.toString(16)}\r\n${line}\r\n`;
  }

  #alignment(fromMs: number, toMs: number): object {
    const msPerCharacter = this.#totalMs / this.#text.length;
    const first = Math.ceil(fromMs / msPerCharacter - 1e-9);
    const last = Math.ceil(toMs / msPerCharacter - 1e-9);
    const seconds = (index: number): number => Math.round(index * msPerCharacter) / 1000;
    const indices = Array.from({ length: last - first }, (_, offset) => first + offset);
    return {
      characters: indices.map((index) => this.#text[index] ?? " "),
      character_start_times_seconds: indices.map(seconds),
      character_end_times_seconds: indices.map((index) => seconds(index + 1)),
    };
  }
}

/** ITU-T G.711 mu-law of a 16-bit sample. */
function ulawOf(sample: number): number {
  const magnitude = Math.min(Math.abs(sample) >> 2, 8158) + 33;
  const exponent = Math.max(0, 31 - Math.clz32(magnitude) - 5);
  const mantissa = (magnitude >> (exponent + 1)) & 0x0f;
  return ~((sample < 0 ? 0x80 : 0) | (exponent << 4) | mantissa) & 0xff;
}
