/** A client of a session that speaks and listens, one utterance after the other, and keeps what came of each. */
import { once } from "node:events";
import { WebSocket } from "ws";
import type { Event } from "../../src/protocol/events.ts";
import { monotonicMs } from "./monotonic.ts";

export interface SpokenUtterance {
  /** From just before the command was written to the first frame, ms; NaN: none came. */
  readonly firstFrameMs: number;
  readonly audio: Buffer;
  readonly events: readonly Event[];
  readonly done: Extract<Event, { type: "utterance.done" }>;
}

const DEADLINE_MS = 20_000;

export class SpeakingClient implements Disposable {
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async open(port: number, path: string): Promise<SpeakingClient> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { perMessageDeflate: false });
    await once(socket, "open");
    return new SpeakingClient(socket);
  }

  /** Resolves at the utterance's end, whatever its outcome. */
  say(command: { readonly text: string; readonly voice_id: string }): Promise<SpokenUtterance> {
    const frames: Buffer[] = [];
    const events: Event[] = [];
    let firstMs = Number.NaN;
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("An utterance does not end")), DEADLINE_MS);
      const take = (data: Buffer, isBinary: boolean): void => {
        if (isBinary) {
          if (frames.length === 0) firstMs = monotonicMs();
          frames.push(data);
          return;
        }
        const event = JSON.parse(data.toString("utf8")) as Event;
        events.push(event);
        if (event.type !== "utterance.done") return;
        clearTimeout(timer);
        socket.off("message", take);
        resolve({ firstFrameMs: firstMs - startMs, audio: Buffer.concat(frames), events, done: event });
      };
      socket.on("message", take);
      const startMs = monotonicMs();
      socket.send(JSON.stringify({ type: "speak", ...command }));
    });
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}
