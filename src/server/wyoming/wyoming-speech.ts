/** One text spoken to a Wyoming client: as it comes from the upstream, as far as the client takes it. */
import type { Socket } from "node:net";
import { GatewayError } from "../../errors.ts";
import { wyomingFrame } from "../../protocol/wyoming.ts";
import type { UpstreamAttempt, UpstreamAttemptOptions } from "../../session/synthesis/upstream-attempt.ts";
import { type AttemptDeps, boundWaiting, startAttempt } from "../../vendor-sockets/requests.ts";

/** What it sends. */
export const WYOMING_FORMAT = { name: "pcm_24000", rate: 24_000, width: 2, channels: 1 } as const;

export interface WyomingSpeechOptions extends AttemptDeps {
  readonly socket: Socket;
  readonly request: Extract<UpstreamAttemptOptions["request"], { readonly kind: "speech" }>;
}

const { name: _name, ...FORMAT } = WYOMING_FORMAT;
const NO_BYTES = Buffer.alloc(0);

export class WyomingSpeech {
  readonly #socket: Socket;
  readonly #counters: WyomingSpeechOptions["counters"];
  readonly #run: UpstreamAttempt;
  #settle: { readonly resolve: () => void; readonly reject: (thrown: unknown) => void } | null = null;
  /** Half a sample. */
  #half: Buffer = NO_BYTES;
  #hasBegun = false;

  /** Asks the upstream at once. */
  constructor(options: WyomingSpeechOptions) {
    const { socket, request } = options;
    this.#socket = socket;
    this.#counters = options.counters;
    this.#run = startAttempt(options, { request, text: request.text, onNews: () => this.pump() });
  }

  /** Resolves once all of it is written; rejects with what went wrong. */
  done(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      this.pump();
    });
  }

  abort(): void {
    const settle = this.#settle;
    this.#settle = null;
    this.#run.abort();
    settle?.resolve();
  }

  /** Moves what has come to the client; again when the socket has drained. */
  pump(): void {
    const settle = this.#settle;
    if (settle === null) return;
    while (!this.#socket.writableNeedDrain) {
      const chunk = this.#run.take();
      if (chunk !== undefined) {
        const { buffer, byteOffset, byteLength } = chunk.audio;
        this.#write(Buffer.from(buffer, byteOffset, byteLength));
        continue;
      }
      const { isComplete } = this.#run;
      const isEmpty = isComplete && !this.#hasBegun;
      // A request that failed is complete, too.
      const error =
        this.#run.error ??
        (isEmpty ? new GatewayError("upstream_protocol", "The upstream's answer has no audio") : null);
      if (error === null && !isComplete) break;
      this.#settle = null;
      if (error !== null) settle.reject(error);
      else {
        this.#socket.write(wyomingFrame("audio-stop"));
        settle.resolve();
      }
      return;
    }
    boundWaiting(this.#run);
  }

  #write(audio: Buffer): void {
    const all = this.#half.length === 0 ? audio : Buffer.concat([this.#half, audio]);
    const whole = all.length - (all.length % WYOMING_FORMAT.width);
    this.#half = all.subarray(whole);
    if (whole === 0) return;
    if (!this.#hasBegun) this.#socket.write(wyomingFrame("audio-start", FORMAT));
    this.#hasBegun = true;
    this.#counters.wyomingBytes += whole;
    this.#socket.write(wyomingFrame("audio-chunk", FORMAT, all.subarray(0, whole)));
  }
}
