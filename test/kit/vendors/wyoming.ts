/** A Wyoming server, scripted: TCP frames, strict about what it is sent, with text in pieces or without. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { bytesOf, piecesOf, speak } from "./spoken.ts";

export const WYOMING_VOICE = "en_US-lessac-medium";
export const WYOMING_RATE = 22_050;

export const WYOMING_FAULTS = [
  "error",
  "no end",
  "stall",
  "reset",
  "empty",
  "closes at once",
  "no voices",
  "long header",
  "long data",
  "long payload",
  "not json",
  "bytes of 8 bits",
  "another rate in the middle",
  "http",
] as const;
export type WyomingFault = (typeof WYOMING_FAULTS)[number];

export interface WyomingOptions {
  readonly isStreaming?: boolean;
  /** Its JSON stands in the line. */
  readonly isInline?: boolean;
  readonly fault?: WyomingFault;
  /** Awaited before it says anything. */
  readonly work?: () => Promise<unknown>;
}

export interface WyomingEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface WyomingServer extends AsyncDisposable {
  readonly url: string;
  /** Frames that it was sent, of each connection. */
  readonly asked: WyomingEvent[][];
  /** What it would have refused. */
  readonly faults: string[];
  readonly open: () => number;
}

/** A long frame's length: more than anybody may take. */
const TOO_LONG = 64 * 1024 * 1024;
const SYNTHESIS = ["synthesize-start", "synthesize-chunk", "synthesize", "synthesize-stop"];

export async function startWyoming(options: WyomingOptions = {}): Promise<WyomingServer> {
  const sockets = new Set<Socket>();
  const asked: WyomingEvent[][] = [];
  const faults: string[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // Who was cut off is what the test is about.
    socket.on("error", () => socket.destroy());
    if (options.fault === "closes at once") socket.destroy();
    const events: WyomingEvent[] = [];
    asked.push(events);
    let bytes: Buffer = Buffer.alloc(0);
    socket.on("data", (piece) => {
      bytes = Buffer.concat([bytes, piece]);
      for (let frame = take(bytes); frame !== null; frame = take(bytes)) {
        bytes = frame.rest;
        events.push(frame.event);
        const fault = answer(socket, events, options);
        if (fault === null) continue;
        faults.push(fault);
        socket.destroy();
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `wyoming://127.0.0.1:${port}`,
    asked,
    faults,
    open: () => sockets.size,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** A frame as the servers in the field write it: its JSON behind the line. */
export function frameOf(
  type: string,
  data: unknown = {},
  payload: Buffer = Buffer.alloc(0),
  isInline = false,
): Buffer {
  const json = Buffer.from(JSON.stringify(data));
  const header = isInline ? { type, data } : { type, data_length: json.length };
  const line = JSON.stringify({ ...header, payload_length: payload.length === 0 ? null : payload.length });
  return Buffer.concat([Buffer.from(`${line}\n`), isInline ? Buffer.alloc(0) : json, payload]);
}

export function take(
  bytes: Buffer,
): { readonly event: WyomingEvent; readonly payload: Buffer; readonly rest: Buffer } | null {
  const newline = bytes.indexOf("\n");
  if (newline < 0) return null;
  const header = JSON.parse(bytes.toString("utf8", 0, newline)) as WyomingEvent & Record<string, number>;
  const dataEnd = newline + 1 + (header.data_length ?? 0);
  const end = dataEnd + (header.payload_length ?? 0);
  if (bytes.length < end) return null;
  const json = bytes.toString("utf8", newline + 1, dataEnd) || "{}";
  const data = { ...header.data, ...(JSON.parse(json) as WyomingEvent["data"]) };
  return {
    event: { type: header.type, data },
    payload: bytes.subarray(dataEnd, end),
    rest: bytes.subarray(end),
  };
}

/** What is wrong with what has come so far; null: nothing. */
function answer(socket: Socket, events: readonly WyomingEvent[], options: WyomingOptions): string | null {
  const { isStreaming = false, isInline = false, fault, work } = options;
  const [{ type, data }, before] = [events.at(-1) as WyomingEvent, events.slice(1, -1)];
  const write = (name: string, value: unknown = {}, payload?: Buffer): void => {
    socket.write(frameOf(name, value, payload, isInline));
  };
  if (events.length === 1) {
    if (type !== "describe") return `${type} before describe`;
    introduce(socket, options, write);
    return null;
  }
  const expected = isStreaming ? SYNTHESIS[before.length] : "synthesize";
  if (type !== expected) return `${type}, expected ${expected}`;
  const voice = data.voice as { readonly name?: string } | undefined;
  if (type !== "synthesize-stop" && type !== "synthesize-chunk" && voice?.name !== WYOMING_VOICE)
    return `${type} asks for ${JSON.stringify(voice)}`;
  if (type === "synthesize-chunk" && typeof data.text !== "string") return "a piece without text";
  if (isStreaming && type !== "synthesize-stop") return null;
  const text = String(events.find((event) => event.type === "synthesize")?.data.text);
  const tell = (): void => {
    if (fault === "error") write("error", { text: `Can't say: ${text}`, code: "ValueError" });
    else say(text, options, write, socket);
    if (isStreaming && fault === undefined) write("synthesize-stopped");
  };
  if (work === undefined) tell();
  else void work().then(tell);
  return null;
}

function introduce(
  socket: Socket,
  { fault, isStreaming }: WyomingOptions,
  write: (name: string, value?: unknown) => void,
): void {
  if (fault === "http") {
    socket.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    return;
  }
  if (fault === "long header") {
    const piece = Buffer.alloc(256 * 1024, 0x20);
    for (let count = 0; count < 16; count += 1) socket.write(piece);
    return;
  }
  if (fault === "long data") {
    socket.write(`{"type": "info", "data_length": ${TOO_LONG}}\n`);
    return;
  }
  const voice = {
    name: WYOMING_VOICE,
    languages: ["en_US"],
    speakers: [{ name: "p7" }],
    installed: true,
    attribution: { name: "", url: "" },
  };
  const program = { name: "piper", installed: true, voices: [voice] };
  const tts = [{ ...program, supports_synthesize_streaming: isStreaming }];
  write("info", { asr: [], tts: fault === "no voices" ? [] : tts, handle: [] });
}

/** A group of audio for each sentence where the text comes in pieces, else one. */
function say(
  text: string,
  { fault, isStreaming = false }: WyomingOptions,
  write: (name: string, value?: unknown, payload?: Buffer) => void,
  socket: Socket,
): void {
  const format = { rate: WYOMING_RATE, width: fault === "bytes of 8 bits" ? 1 : 2, channels: 1 };
  const sentences = isStreaming ? (text.match(/[^.!?]+[.!?]?/g) ?? []) : [text];
  for (const [index, sentence] of sentences.entries()) {
    if (fault === "empty") continue;
    write("audio-start", format);
    const pieces = piecesOf(bytesOf(speak(sentence, { sampleRate: WYOMING_RATE }).pcm), 3001);
    const some = fault === undefined ? pieces : pieces.slice(0, Math.ceil(pieces.length / 2));
    for (const [place, piece] of some.entries()) {
      const isOther = fault === "another rate in the middle" && place > 0;
      write("audio-chunk", isOther ? { ...format, rate: 16_000 } : format, piece);
    }
    if (fault === "long payload") {
      socket.write(`{"type": "audio-chunk", "data_length": 0, "payload_length": ${TOO_LONG}}\n`);
    }
    if (fault === "not json") socket.write('{"type": "audio-chunk", "data_le\n');
    if (fault === "reset") socket.resetAndDestroy();
    if (fault === "no end") socket.end();
    if (fault !== undefined) return;
    write("audio-stop", index === 0 ? { timestamp: null } : {});
  }
  if (fault === "empty") write(isStreaming ? "synthesize-stopped" : "audio-stop");
}
