/** A good session beside the crowd: it says one sentence again and again, and each time has to hear all of it. */
import WebSocket from "ws";
import { NEIGHBOUR_VOICE } from "./quick-upstream.ts";

const TEXT = "Nobody else may be disturbed by what the crowd sends.";
/** What it hears each time differs by the frame in which the next sentence begins. */
const FRAME_BYTES = 160;
const SILENT_MS = 20_000;

export class Neighbour implements AsyncDisposable {
  readonly faults: string[] = [];
  /** Sentences that were heard. */
  heard = 0;
  readonly #socket: WebSocket;
  readonly #watch: NodeJS.Timeout;
  #bytes = 0;
  #expectedBytes = 0;
  #lastMs = performance.now();
  #isLeaving = false;

  constructor(port: number, name: string) {
    this.#socket = new WebSocket(`ws://127.0.0.1:${port}/live/${name}?format=ulaw_8000`);
    this.#socket.on("open", () => this.#say());
    this.#socket.on("message", (data: Buffer, isBinary) => this.#take(data, isBinary));
    this.#socket.on("close", (code) => {
      if (!this.#isLeaving) this.faults.push(`the neighbour's connection was closed with ${code}`);
    });
    this.#socket.on("error", (error) =>
      this.faults.push(`the neighbour's connection broke: ${error.message}`),
    );
    this.#watch = setInterval(() => {
      if (performance.now() - this.#lastMs > SILENT_MS)
        this.faults.push(`the neighbour heard nothing for ${SILENT_MS} ms`);
    }, SILENT_MS);
  }

  #say(): void {
    this.#socket.send(JSON.stringify({ type: "speak", text: TEXT, voice_id: NEIGHBOUR_VOICE }));
  }

  #take(data: Buffer, isBinary: boolean): void {
    this.#lastMs = performance.now();
    if (isBinary) {
      this.#bytes += data.length;
      return;
    }
    const event = JSON.parse(data.toString()) as { readonly type: string; readonly outcome?: string };
    if (["error", "warning", "gap"].includes(event.type))
      this.faults.push(`the neighbour got ${data.toString().slice(0, 300)}`);
    if (event.type !== "utterance.done") return;
    if (event.outcome !== "done") this.faults.push(`the neighbour's sentence ended as ${event.outcome}`);
    this.#expectedBytes ||= this.#bytes;
    const missing = this.#expectedBytes - this.#bytes;
    // The gateway may fill a pause: what is missing is a fault.
    if (missing > FRAME_BYTES) this.faults.push(`the neighbour missed ${missing} bytes of its sentence`);
    this.#bytes = 0;
    this.heard += 1;
    this.#say();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isLeaving = true;
    clearInterval(this.#watch);
    this.#socket.terminate();
    await Promise.resolve();
  }
}
