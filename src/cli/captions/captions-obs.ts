/** OBS Studio by obs-websocket 5: captions (CEA-608) in the stream that OBS sends, so also on Twitch and YouTube. */
import { createHash } from "node:crypto";
import { on } from "node:events";
import { WebSocket } from "ws";
import { type CaptionTarget, type ShownCue, shownText, TargetError } from "./captions-target.ts";

const TIMEOUT_MS = 5000;
/** Largest message that is taken from OBS. */
const MAX_MESSAGE_BYTES = 64 * 1024;
const RPC_VERSION = 1;
const OP = { hello: 0, identify: 1, identified: 2, request: 6, response: 7 } as const;
/** Close code of a wrong or missing password. */
const AUTHENTICATION_FAILED = 4009;
/** Request status: OBS does not stream. */
const OUTPUT_NOT_RUNNING = 501;

interface ObsMessage {
  readonly op: number;
  readonly d: Readonly<Record<string, unknown>>;
}

export class ObsTarget implements CaptionTarget {
  readonly name = "OBS";
  readonly #address: URL;
  readonly #password: string;
  #socket: ObsSocket | null = null;
  #requests = 0;

  /** `address`: `ws://host:4455`. `password`: empty where OBS asks for none. */
  constructor(address: URL, password: string) {
    this.#address = address;
    this.#password = password;
  }

  async send(shown: ShownCue, signal: AbortSignal): Promise<void> {
    if (this.#socket === null || this.#socket.isOver) {
      this.#socket = new ObsSocket(this.#address);
      await this.#identify(this.#socket, signal);
    }
    this.#requests += 1;
    const requestId = `caption-${this.#requests}`;
    const answer = await this.#socket.ask(
      {
        op: OP.request,
        d: {
          requestType: "SendStreamCaption",
          requestId,
          requestData: { captionText: shownText(shown, "pop-on", "\n") },
        },
      },
      ({ op, d }) => op === OP.response && d.requestId === requestId,
      signal,
    );
    const { result, code } = answer.d.requestStatus as { result?: unknown; code?: unknown };
    if (result === true) return;
    const reason = code === OUTPUT_NOT_RUNNING ? "does not stream" : `refused a caption (${String(code)})`;
    throw new TargetError(reason, false);
  }

  close(): void {
    this.#socket?.close();
    this.#socket = null;
  }

  async #identify(socket: ObsSocket, signal: AbortSignal): Promise<void> {
    const hello = await socket.ask(null, ({ op }) => op === OP.hello, signal);
    const asked = hello.d.authentication as { challenge?: unknown; salt?: unknown } | undefined;
    const authentication =
      asked === undefined
        ? {}
        : { authentication: obsAnswer(this.#password, String(asked.salt), String(asked.challenge)) };
    const identify = {
      op: OP.identify,
      d: { rpcVersion: RPC_VERSION, eventSubscriptions: 0, ...authentication },
    };
    await socket.ask(identify, ({ op }) => op === OP.identified, signal);
  }
}

/** base64(sha256(base64(sha256(password + salt)) + challenge)). */
function obsAnswer(password: string, salt: string, challenge: string): string {
  const hash = (text: string): string => createHash("sha256").update(text).digest("base64");
  return hash(hash(password + salt) + challenge);
}

/** One connection, and one message that is waited for at a time. */
class ObsSocket {
  readonly #socket: WebSocket;
  #end: TargetError | null = null;

  constructor(address: URL) {
    this.#socket = new WebSocket(address, "obswebsocket.json", {
      handshakeTimeout: TIMEOUT_MS,
      maxPayload: MAX_MESSAGE_BYTES,
    });
    this.#socket.on("error", () => {
      this.#end ??= new TargetError("can't be reached", true);
    });
    this.#socket.on("close", (code) => {
      const isRefused = code === AUTHENTICATION_FAILED;
      this.#end ??= new TargetError(isRefused ? "refused the password" : `closed (${code})`, !isRefused);
    });
  }

  get isOver(): boolean {
    return this.#end !== null;
  }

  /** Sends, and waits for an answer. Rejects with TargetError; the connection is over then. */
  async ask(
    message: ObsMessage | null,
    isAnswer: (message: ObsMessage) => boolean,
    signal: AbortSignal,
  ): Promise<ObsMessage> {
    const expired = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    try {
      if (this.#end !== null) throw this.#end;
      const received = on(this.#socket, "message", { signal: expired, close: ["close"] });
      if (message !== null) this.#socket.send(JSON.stringify(message));
      for await (const [data] of received) {
        const answer = messageOf(String(data));
        if (isAnswer(answer)) return answer;
      }
    } catch {
      // Expired, or broken: which of them is in `#end` by now.
      this.#end ??= new TargetError(`no answer within ${TIMEOUT_MS} ms`, true);
    }
    this.close();
    throw this.#end ?? new TargetError("closed", true);
  }

  /** Idempotent. */
  close(): void {
    this.#end ??= new TargetError("closed", false);
    if (this.#socket.readyState === WebSocket.CONNECTING) this.#socket.terminate();
    else this.#socket.close();
  }
}

/** What can't be read counts as a message that nobody waits for. */
function messageOf(text: string): ObsMessage {
  try {
    const value = JSON.parse(text) as Partial<ObsMessage> | null;
    return { op: value?.op ?? -1, d: value?.d ?? {} };
  } catch {
    return { op: -1, d: {} };
  }
}
