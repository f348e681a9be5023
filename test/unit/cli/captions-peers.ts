/** What the tests of `voicewire captions` share: cues, a queue that keeps what it reports, and a scripted HTTP service. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CaptionQueue } from "../../../src/cli/captions/captions-queue.ts";
import type { CaptionTarget, ShownCue } from "../../../src/cli/captions/captions-target.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import type { CueEvent } from "../../../src/protocol/events.ts";

const SHOWN_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export function shown(lines: string[], speaker?: string): ShownCue {
  const cue: CueEvent = {
    type: "cue",
    seq: 1,
    at_ms: 0,
    utterance_id: "u",
    start_ms: 0,
    end_ms: 1000,
    start: 0,
    end: 1,
    ...(speaker === undefined ? {} : { speaker }),
    lines: lines.map((text) => ({ text, words: [] })),
  };
  return { cue, shownMs: SHOWN_MS };
}

interface Taken {
  readonly method: string;
  readonly url: URL;
  readonly body: string;
}

/** Answers each request with what the script says next: a status with a body, or nothing at all. */
export class Peer implements AsyncDisposable {
  readonly taken: Taken[] = [];
  readonly #server: Server;
  readonly #script: (taken: Taken) => { status: number; body?: string } | "cut";

  constructor(script: (taken: Taken) => { status: number; body?: string } | "cut") {
    this.#script = script;
    this.#server = createServer((request, response) => {
      void bodyOf(request).then((body) => {
        const url = new URL(request.url ?? "", "http://peer");
        const taken = { method: request.method ?? "", url, body };
        this.taken.push(taken);
        const answer = this.#script(taken);
        if (answer === "cut") request.socket.destroy();
        else response.writeHead(answer.status).end(answer.body ?? "");
      });
    });
  }

  async listen(path: string): Promise<URL> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
}

export function queueOf(target: CaptionTarget) {
  const reported: string[] = [];
  const warn = (line: string) => void reported.push(line);
  return { queue: new CaptionQueue({ target, clock: systemClock, warn, random: () => 0 }), reported };
}
