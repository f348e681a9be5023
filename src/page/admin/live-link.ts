/** The socket of the live view: it comes back by itself, and says again what is watched. */
import { backoffMs } from "../../client/backoff.ts";
import type { LiveMessage, Watch } from "../../protocol/live-view.ts";

const SUBPROTOCOL = "voicewire.v1";
/** Browsers can't set headers on a WebSocket: the token is a second subprotocol. */
const TOKEN_SUBPROTOCOL = "voicewire.token.";
/** After these a try with the same token is worth nothing. */
const FINAL: ReadonlySet<string> = new Set(["unauthorized", "token_expired", "token_revoked", "forbidden"]);

export type LinkState =
  | { readonly kind: "connecting" | "open" }
  | { readonly kind: "waiting"; readonly seconds: number; readonly code: string | null }
  /** It wants another token. */
  | { readonly kind: "refused"; readonly code: string };

export interface LiveLinkOptions {
  readonly url: string;
  readonly onMessage: (message: LiveMessage) => void;
  readonly onState: (state: LinkState) => void;
}

type Refusal = { readonly type: "error"; readonly code: string };

export class LiveLink {
  readonly #options: LiveLinkOptions;
  #token: string | null;
  #watch: Omit<Watch, "type">;
  #socket: WebSocket | null = null;
  #attempt = 0;
  #retry = 0;

  constructor(options: LiveLinkOptions, token: string | null, watch: Omit<Watch, "type">) {
    this.#options = options;
    this.#token = token;
    this.#watch = watch;
  }

  start(): void {
    this.#connect();
  }

  /** Whether a token was shown. */
  get hasToken(): boolean {
    return this.#token !== null;
  }

  useToken(token: string): void {
    this.#token = token;
    this.#attempt = 0;
    this.#connect();
  }

  watch(watch: Omit<Watch, "type">): void {
    this.#watch = watch;
    if (this.#socket?.readyState === WebSocket.OPEN) this.#say();
  }

  #connect(): void {
    clearTimeout(this.#retry);
    const former = this.#socket;
    this.#socket = null;
    former?.close();
    this.#options.onState({ kind: "connecting" });
    const protocols = [SUBPROTOCOL, ...(this.#token === null ? [] : [TOKEN_SUBPROTOCOL + this.#token])];
    let socket: WebSocket;
    try {
      socket = new WebSocket(this.#options.url, protocols);
    } catch {
      // Characters that no token has.
      this.#options.onState({ kind: "refused", code: "token_failed" });
      return;
    }
    this.#socket = socket;
    let refused: string | null = null;
    let isAnswered = false;
    socket.addEventListener("open", () => this.#say());
    socket.addEventListener("message", ({ data }) => {
      if (socket !== this.#socket) return;
      const message = JSON.parse(String(data)) as LiveMessage | Refusal;
      if (message.type === "error") {
        refused = message.code;
        return;
      }
      if (!isAnswered) this.#options.onState({ kind: "open" });
      isAnswered = true;
      this.#attempt = 0;
      this.#options.onMessage(message);
    });
    socket.addEventListener("close", () => {
      if (socket !== this.#socket) return;
      this.#socket = null;
      if (refused !== null && FINAL.has(refused)) this.#options.onState({ kind: "refused", code: refused });
      else this.#comeBack(refused);
    });
  }

  #comeBack(code: string | null): void {
    this.#attempt += 1;
    const delayMs = backoffMs(this.#attempt, Math.random());
    this.#options.onState({ kind: "waiting", seconds: Math.ceil(delayMs / 1000), code });
    this.#retry = window.setTimeout(() => this.#connect(), delayMs);
  }

  #say(): void {
    const message: Watch = { type: "watch", ...this.#watch };
    this.#socket?.send(JSON.stringify(message));
  }
}
