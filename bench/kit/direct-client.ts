/** Asks a service with nothing between: its own client library's work at its barest, and the first audio found in the answer. */
import { connect } from "node:net";
import { Client } from "undici";
import { WebSocket } from "ws";
import { parseUpstreamFormat } from "../../src/audio/formats.ts";
import type { ServiceRequest } from "../../src/upstream/services/adapter.ts";
import { chooseFormat } from "../../src/upstream/services/audio-converter.ts";
import { SERVICES } from "../../src/upstream/services/services.ts";
import { frameOf, take } from "../../test/kit/vendors/wyoming.ts";
import { monotonicMs } from "./monotonic.ts";
import { type AudioOf, FIRST, type ScriptedService } from "./scripted-services.ts";

/** Asks, waits for the end of the answer, and returns how long it took from the call to the first audio, ms. */
export type DirectClient = (text: string) => Promise<number>;

const WAV_HEADER_BYTES = 44;

export interface DirectOptions {
  /** Its adapter's name. */
  readonly name: string;
  readonly service: ScriptedService;
  readonly url: string;
  /** As a listener of the gateway asks for it. */
  readonly format: string;
}

export function directClient(options: DirectOptions): DirectClient {
  const { service, url } = options;
  const asked = askedBy(options);
  switch (service.kind) {
    case "lines":
      return overHttp(url, asked, () => lineReader(service.audioOf));
    case "audio":
      return overHttp(url, asked, plainReader);
    case "messages":
      return onSocket(url, asked, (message) => decoded(service.audioOf, message.toString("utf8")));
    case "azure":
      return onSocket(url, asked, azureAudio);
    case "wyoming":
      return onWyoming(url, service.voice);
  }
}

type Asked = (text: string) => Pick<ServiceRequest, "path" | "body" | "headers">;
/** Bytes of audio that stand in the piece, or in pieces before it. */
type AudioReader = (piece: Buffer) => number;

/** The very request that the gateway makes: the adapter writes it. */
function askedBy({ name, service: { key, voice }, url, format }: DirectOptions): Asked {
  if (name === FIRST)
    return (text) => ({
      path: `/v1/text-to-speech/${voice}/stream/with-timestamps?output_format=${format}`,
      headers: ["content-type", "application/json"],
      body: JSON.stringify({ text, model_id: "eleven_flash_v2_5" }),
    });
  const adapter = SERVICES[name]?.create({ name, key, baseUrl: url, model: "", sampleRate: null });
  const wanted = parseUpstreamFormat(format);
  if (adapter === undefined || wanted === undefined) throw new Error(`No adapter ${name}, or no ${format}`);
  const sampled = chooseFormat(wanted, adapter.capabilities.formats);
  return (text) => {
    const request = {
      kind: "speech",
      voiceId: voice,
      text,
      outputFormat: format,
      wantsTiming: true,
    } as const;
    const { path, body, headers = [] } = adapter.request(request, sampled);
    const all = [...adapter.headers, ...headers];
    return { path, body, headers: adapter.line ? all : [...all, "content-type", "application/json"] };
  };
}

function overHttp(url: string, asked: Asked, reader: () => AudioReader): DirectClient {
  const client = new Client(url, { pipelining: 1 });
  return async (text) => {
    const startMs = monotonicMs();
    const { path, body, headers = [] } = asked(text);
    const answer = await client.request({ method: "POST", path, body: String(body), headers: [...headers] });
    if (answer.statusCode !== 200)
      throw new Error(`${url} answered with ${answer.statusCode}: ${await answer.body.text()}`);
    let firstMs = Number.NaN;
    const read = reader();
    for await (const piece of answer.body) {
      if (Number.isNaN(firstMs) && read(piece as Buffer) > 0) firstMs = monotonicMs();
    }
    return firstMs - startMs;
  };
}

/** Lines of JSON, or events with one in each. */
function lineReader(audioOf: AudioOf): AudioReader {
  let rest = "";
  return (piece) => {
    rest += piece.toString("utf8");
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    return lines.reduce((bytes, line) => bytes + decoded(audioOf, line.replace(/^data: /, "")), 0);
  };
}

function decoded(audioOf: AudioOf, json: string): number {
  if (!json.startsWith("{")) return 0;
  const audio = audioOf(JSON.parse(json) as Record<string, unknown>);
  return typeof audio === "string" ? Buffer.from(audio, "base64").length : 0;
}

/** Samples, or WAV. */
function plainReader(): AudioReader {
  let bytes = 0;
  let headerBytes: number | null = null;
  return (piece) => {
    headerBytes ??= piece.toString("latin1", 0, 4) === "RIFF" ? WAV_HEADER_BYTES : 0;
    bytes += piece.length;
    return bytes - headerBytes;
  };
}

/** A socket for each request: what is measured has no other's to go on with either. */
function onSocket(url: string, asked: Asked, audioIn: AudioReader): DirectClient {
  return (text) => {
    const startMs = monotonicMs();
    const { path, body, headers = [] } = asked(text);
    const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? ""]] : []));
    const socket = new WebSocket(`${url}${path}`, {
      headers: Object.fromEntries(pairs),
      perMessageDeflate: false,
    });
    let firstMs = Number.NaN;
    socket.on("open", () => {
      for (const message of body) socket.send(message);
    });
    socket.on("message", (data: Buffer) => {
      if (Number.isNaN(firstMs) && audioIn(data) > 0) firstMs = monotonicMs();
    });
    return new Promise((resolve, reject) => {
      socket.on("close", () => resolve(firstMs - startMs));
      socket.on("error", reject);
    });
  };
}

/** Binary messages carry audio behind their headers, whose length stands before them. */
function azureAudio(message: Buffer): number {
  const isText = (message[0] ?? 0) >= 0x20;
  return isText ? 0 : message.length - 2 - message.readUInt16BE(0);
}

function onWyoming(url: string, voice: string): DirectClient {
  const { port } = new URL(url.replace("wyoming:", "http:"));
  return (text) => {
    const startMs = monotonicMs();
    const socket = connect({ port: Number(port), host: "127.0.0.1", noDelay: true });
    let firstMs = Number.NaN;
    let bytes: Buffer = Buffer.alloc(0);
    const meet = (type: string, payloadBytes: number): void => {
      if (type === "info") socket.write(frameOf("synthesize", { text, voice: { name: voice } }));
      if (type === "audio-chunk" && payloadBytes > 0 && Number.isNaN(firstMs)) firstMs = monotonicMs();
      if (type === "audio-stop") socket.end();
    };
    socket.write(frameOf("describe"));
    socket.on("data", (piece) => {
      bytes = Buffer.concat([bytes, piece]);
      for (let frame = take(bytes); frame !== null; frame = take(bytes)) {
        bytes = frame.rest;
        meet(frame.event.type, frame.payload.length);
      }
    });
    return new Promise((resolve, reject) => {
      socket.on("close", () => resolve(firstMs - startMs));
      socket.on("error", reject);
    });
  };
}
