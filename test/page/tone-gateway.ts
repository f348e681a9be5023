/**
 * A small real WebSocket server that speaks the native protocol with a tone instead of a voice: each word of a text
 * lasts as long as it has letters and sounds at a pitch of its own. It stands in for the gateway where a test is
 * about the page or the client, and needs a word's time to be known beforehand.
 */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { WebSocketServer } from "ws";
import type { OfferedVoice, OfferedVoices } from "../../src/protocol/voice-list.ts";
import { ToneSession, type ToneSessionOptions } from "./tone-session.ts";

/** What the real gateway is to answer the page with: no inline code, WebAssembly allowed, sockets to itself. */
const SECURITY_POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src 'self' data:";

export interface ToneGatewayOptions extends ToneSessionOptions {
  /** More voices, and services whose voices are missing. */
  readonly offered?: OfferedVoices;
  /** Folder with main.js, index.html and style.css; none = sockets only. */
  readonly pageFolder?: string;
}

export class ToneGateway {
  readonly sessions = new Map<string, ToneSession>();
  readonly #server: Server;
  readonly #sockets: WebSocketServer;
  readonly #options: ToneGatewayOptions;

  private constructor(options: ToneGatewayOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      const { status, type, body } = this.#answer(new URL(request.url ?? "/", "http://localhost").pathname);
      response.writeHead(status, { "content-type": type, "content-security-policy": SECURITY_POLICY });
      response.end(body);
    });
    this.#sockets = new WebSocketServer({ server: this.#server });
    this.#sockets.on("connection", (socket, request) => {
      const url = new URL(request.url ?? "/", "http://localhost");
      const id = decodeURIComponent(url.pathname.replace("/live/", ""));
      const session = this.sessions.get(id) ?? new ToneSession(id, this.#options);
      this.sessions.set(id, session);
      session.join(socket, url.searchParams);
    });
  }

  static async start(options: ToneGatewayOptions = {}): Promise<ToneGateway> {
    const gateway = new ToneGateway(options);
    await new Promise<void>((resolve) => gateway.#server.listen(0, "127.0.0.1", resolve));
    return gateway;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("Tone gateway is not listening");
    return `http://127.0.0.1:${address.port}`;
  }

  /** Cuts every connection, as a gateway that dies does. */
  dropAll(): void {
    for (const socket of this.#sockets.clients) socket.terminate();
  }

  /** As `dropAll`, and it has forgotten its sessions: as one that was killed and started again. */
  restart(): void {
    for (const session of this.sessions.values()) session.close();
    this.sessions.clear();
    this.dropAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.sessions.values()) session.close();
    this.dropAll();
    this.#sockets.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(path: string): { status: number; type: string; body: string | Uint8Array } {
    const { voices = [], unlisted = [] } = this.#options.offered ?? {};
    if (path === "/voices") return json({ voices: [...voices, ...VOICES], unlisted });
    if (path === "/v1/models") return json(MODELS);
    const file = FILES[path];
    const folder = this.#options.pageFolder;
    if (file === undefined || folder === undefined)
      return { status: 404, type: "text/plain", body: "not here" };
    return { status: 200, type: file.type, body: readFileSync(join(folder, file.name)) };
  }
}

const FILES: Readonly<Record<string, { name: string; type: string }>> = {
  "/": { name: "index.html", type: "text/html; charset=utf-8" },
  "/main.js": { name: "main.js", type: "text/javascript; charset=utf-8" },
  "/style.css": { name: "style.css", type: "text/css; charset=utf-8" },
};

const VOICES: OfferedVoice[] = [
  {
    voice_id: "voice-a",
    name: "Nora",
    labels: { accent: "american", gender: "female", language: "en" },
    upstream: null,
  },
  {
    voice_id: "voice-b",
    name: "Amos",
    labels: { accent: "british", gender: "male", language: "en" },
    upstream: null,
  },
  { voice_id: "voice-c", name: "Samir", labels: { gender: "male", language: "ar" }, upstream: null },
];
const MODELS = [
  {
    model_id: "tone",
    name: "Tone",
    can_do_text_to_speech: true,
    languages: [{ language_id: "fi", name: "Finnish" }],
  },
];

function json(value: unknown): { status: number; type: string; body: string } {
  return { status: 200, type: "application/json", body: JSON.stringify(value) };
}
