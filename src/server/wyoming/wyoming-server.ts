/**
 * The gateway as a Wyoming server on a TCP port of its own, so that Home Assistant speaks with its voices. The protocol has
 * no keys: addresses that may come are named, and where there are no keys this machine's own may.
 */
import { type BlockList, createServer, type Socket } from "node:net";
import { ANYBODY } from "../../access/caller.ts";
import type { Door } from "../../access/door.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import { networksOf } from "../../kit/networks.ts";
import { defaultModelFor } from "../../protocol/upstream-voice.ts";
import type { OfferedVoice, OfferedVoices } from "../../protocol/voice-list.ts";
import { type WyomingFrame, WyomingReader, wyomingFrame } from "../../protocol/wyoming.ts";
import type { AttemptDeps } from "../../vendor-sockets/requests.ts";
import { sayable } from "../../vendor-sockets/sayable.ts";
import { isInNetworks } from "../carriers/rtp-networks.ts";
import type { VoiceNames } from "../proxy/voice-names.ts";
import { WYOMING_FORMAT, WyomingSpeech } from "./wyoming-speech.ts";
import { sentencesEnd, textOf, voiceNameOf } from "./wyoming-text.ts";

export interface WyomingServerOptions extends AttemptDeps {
  readonly door: Door;
  readonly log: Logger;
  readonly voices: VoiceNames;
  /** What it lists. Does not reject. */
  readonly offered: () => Promise<OfferedVoices>;
  /** See defaultModelFor. */
  readonly ownVoices: ReadonlySet<string>;
  /** The voice of clients that name none. */
  readonly defaultVoice: () => Promise<string>;
  /** "": the upstream's own. */
  readonly defaultModel: string;
  /** Where clients may come from; null: from this machine, where the gateway asks for no keys. */
  readonly allow: BlockList | null;
  readonly version: string;
  readonly host: string;
  /** 0: one that is free. */
  readonly port: number;
}

export interface WyomingServer {
  readonly port: number;
  /** Takes no new clients. Idempotent. */
  stopListening(): void;
  /** Ends every connection. Idempotent. */
  close(): void;
}

/** In the audit log. */
const SURFACE = "wyoming";
const LOOPBACK = networksOf("127.0.0.0/8", "::1/128");
const MAX_CONNECTIONS = 256;
/** Texts of one client that wait for those before them. */
const MAX_WAITING = 32;
/** What a client that does not read may be behind with when it asks for more. */
const MAX_BEHIND_BYTES = 256 * 1024;
/** So long a client may say nothing while it has nothing to hear, or read nothing of what it hears. Then it counts as gone. */
const IDLE_MS = 300_000;
const LIMITS = { header: 64 * 1024, data: 64 * 1024, payload: 64 * 1024 };
/** Voices in one list: each takes some hundred bytes of a frame. */
const MAX_LISTED_VOICES = 2000;
/** What a voice of many languages is announced with; which of them a text is in is not known. */
const LANGUAGES = "en ar cs da de el es fi fr hi hu id it ja ko nl no pl pt ro ru sv tr uk vi zh".split(" ");
const ATTRIBUTION = { name: "voicewire", url: "" };

/** Listens. Rejects with port_in_use. */
export async function startWyoming(options: WyomingServerOptions): Promise<WyomingServer> {
  const { door, allow, host, port, log, counters } = options;
  const sockets = new Set<Socket>();
  const refused = (thrown: GatewayError, address: string): void =>
    door.audit.refused({ thrown, surface: SURFACE, address, caller: null });
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", (thrown) => log.debug({ detail: thrown.message }, "Wyoming connection broke"));
    const address = socket.remoteAddress ?? "";
    const isAllowed =
      allow === null ? door.access.isOpen && isInNetworks(LOOPBACK, address) : isInNetworks(allow, address);
    if (isAllowed) {
      counters.wyomingOpened += 1;
      socket.on("close", () => {
        counters.wyomingClosed += 1;
      });
      new WyomingClient(socket, options, address);
    } else {
      const what = `${address} is outside the networks of the setting wyoming-allow`;
      refused(new GatewayError("forbidden", what), address);
      socket.destroy();
    }
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on("drop", (dropped) => {
    const what = `${MAX_CONNECTIONS} Wyoming clients are connected already`;
    refused(new GatewayError("connection_limit", what), dropped?.remoteAddress ?? "");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      reject(new GatewayError("port_in_use", `Can't listen for Wyoming on ${host}:${port}`, { cause }));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    stopListening: () => {
      server.close();
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** What is done for a client, one after the other. */
type Job =
  | { readonly kind: "info" }
  | { readonly kind: "stopped" }
  | { readonly kind: "say"; text: string; readonly voice: string | null };

class WyomingClient {
  readonly #socket: Socket;
  readonly #options: WyomingServerOptions;
  readonly #address: string;
  readonly #jobs: Job[] = [];
  #isBusy = false;
  #isClosed = false;
  #speech: WyomingSpeech | null = null;
  /** Text that comes in pieces. */
  #pieces: { readonly voice: string | null; text: string } | null = null;
  #idle: Timer | null = null;

  constructor(socket: Socket, options: WyomingServerOptions, address: string) {
    this.#socket = socket;
    this.#options = options;
    this.#address = address;
    const reader = new WyomingReader({
      limits: LIMITS,
      broken: (what) => new GatewayError("malformed_json", `Not Wyoming: ${what}`),
      onFrame: (frame) => this.#meet(frame),
    });
    socket.on("data", (bytes) => {
      if (this.#isClosed) return;
      try {
        reader.push(bytes);
      } catch (thrown) {
        this.#fail(thrown);
      }
    });
    socket.on("drain", () => {
      this.#rest();
      this.#speech?.pump();
    });
    socket.on("close", () => this.#close());
    this.#rest();
  }

  #meet({ type, data }: WyomingFrame): void {
    if (this.#isClosed) return;
    if (this.#socket.writableLength > MAX_BEHIND_BYTES)
      throw new GatewayError(
        "slow_consumer",
        "You do not read what you were sent: read on before you ask for more",
      );
    switch (type) {
      case "describe":
        this.#add({ kind: "info" });
        return;
      case "ping":
        this.#socket.write(wyomingFrame("pong", data));
        return;
      case "synthesize":
        // Inside pieces it repeats them, for servers that take none.
        if (this.#pieces === null) this.#add({ kind: "say", text: textOf(data), voice: voiceNameOf(data) });
        return;
      case "synthesize-start":
        this.#pieces = { voice: voiceNameOf(data), text: "" };
        return;
      case "synthesize-chunk":
        if (this.#pieces !== null) {
          this.#pieces.text += textOf(data, this.#pieces.text);
          this.#sayPieces(sentencesEnd(this.#pieces.text));
        }
        return;
      case "synthesize-stop":
        if (this.#pieces === null) return;
        this.#sayPieces(this.#pieces.text.length);
        this.#pieces = null;
        this.#add({ kind: "stopped" });
    }
  }

  #sayPieces(length: number): void {
    const pieces = this.#pieces;
    if (pieces === null || length === 0) return;
    const text = pieces.text.slice(0, length);
    pieces.text = pieces.text.slice(length);
    const last = this.#jobs.at(-1);
    // Sentences that wait are said in one.
    if (last?.kind === "say" && last.voice === pieces.voice) last.text += textOf({ text }, last.text);
    else this.#add({ kind: "say", text, voice: pieces.voice });
  }

  #add(job: Job): void {
    if (this.#jobs.length >= MAX_WAITING)
      throw new GatewayError("queue_full", `${MAX_WAITING} texts wait already: wait for their audio`);
    this.#jobs.push(job);
    if (!this.#isBusy) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    try {
      for (let job = this.#jobs.shift(); job !== undefined && !this.#isClosed; job = this.#jobs.shift()) {
        if (job.kind === "info") this.#write("info", await this.#info());
        else if (job.kind === "stopped") this.#write("synthesize-stopped", {});
        else if (job.text.trim() !== "") await this.#say(job.text, job.voice);
      }
    } catch (thrown) {
      this.#fail(thrown);
    }
    this.#isBusy = false;
    this.#rest();
  }

  async #say(text: string, named: string | null): Promise<void> {
    const { door, voices, defaultVoice, defaultModel, ownVoices, ...deps } = this.#options;
    const voiceId = named === null ? await defaultVoice() : await voices.idOf({ name: named });
    if (this.#isClosed) return;
    const charged = door.limits.speechBudget(() => ANYBODY).begin(text.length);
    try {
      const modelId = defaultModelFor(voiceId, defaultModel, ownVoices);
      const subject = door.limits.upstreamSubject(ANYBODY, this.#address);
      const said = sayable(text, modelId);
      const request = {
        ...{
          kind: "speech" as const,
          voiceId,
          text: said,
          outputFormat: WYOMING_FORMAT.name,
          wantsTiming: false,
          subject,
        },
        ...(modelId === "" ? {} : { modelId }),
      } as const;
      deps.counters.wyomingTexts += 1;
      this.#speech = new WyomingSpeech({ ...deps, socket: this.#socket, request });
      await this.#speech.done();
    } finally {
      this.#speech = null;
      charged.end();
    }
  }

  async #info(): Promise<Record<string, unknown>> {
    const { offered, version } = this.#options;
    const { voices } = await offered();
    const shared = { attribution: ATTRIBUTION, installed: true, version };
    return {
      tts: [
        {
          ...{ name: "voicewire", description: "voicewire", ...shared },
          supports_synthesize_streaming: true,
          voices: voices.slice(0, MAX_LISTED_VOICES).map((voice) => ({
            name: voice.voice_id,
            description: voice.name,
            languages: languagesOf(voice),
            ...shared,
          })),
        },
      ],
    };
  }

  #write(type: string, data: Readonly<Record<string, unknown>>): void {
    if (!this.#isClosed) this.#socket.write(wyomingFrame(type, data));
  }

  /** The protocol's way: an error, and the connection ends. */
  #fail(thrown: unknown): void {
    if (this.#isClosed) return;
    const { door, log } = this.#options;
    const error = toGatewayError(thrown);
    if (error.code === "internal") log.error({ err: error.cause ?? error }, "Fault in a Wyoming connection");
    door.audit.sent(error);
    this.#write("error", { text: error.message, code: error.code });
    this.#close();
    this.#socket.end();
    this.#socket.destroySoon();
  }

  #rest(): void {
    const { clock } = this.#options;
    this.#idle?.cancel();
    if (!this.#isClosed) this.#idle = clock.at(clock.nowMs() + IDLE_MS, () => this.#onIdle());
  }

  #onIdle(): void {
    if (this.#isBusy && !this.#socket.writableNeedDrain) this.#rest();
    else this.#socket.destroy();
  }

  #close(): void {
    this.#isClosed = true;
    this.#jobs.length = 0;
    this.#idle?.cancel();
    this.#speech?.abort();
  }
}

/** Most voices of other services speak one language. */
function languagesOf({ upstream, labels }: OfferedVoice): readonly string[] {
  return upstream !== null && labels.language !== undefined ? [labels.language] : LANGUAGES;
}
