/**
 * Stands between gateway and embedded service, passes everything through, and asks the service for its ground truth:
 * the engine's own word events of the very response that the gateway got.
 */
import { createServer, request } from "node:http";
import { listening } from "./listening.ts";

export interface TruthWord {
  readonly character_index: number;
  readonly start_time_seconds: number;
}

interface Line {
  readonly audio_base64: string;
  readonly alignment: {
    readonly characters: string[];
    readonly character_start_times_seconds: number[];
  } | null;
  readonly voicewire_words?: TruthWord[];
}

export interface TruthProxy extends AsyncDisposable {
  readonly url: string;
  /** One entry a synthesis, in order: the lines of its response. */
  readonly responses: { lines(): Line[]; readonly raw: Buffer[] }[];
}

export async function startTruthProxy(serviceUrl: string): Promise<TruthProxy> {
  const responses: TruthProxy["responses"] = [];
  const server = createServer((incoming, outgoing) => {
    const onward = request(
      `${serviceUrl}${incoming.url ?? "/"}`,
      {
        method: incoming.method,
        headers: { ...incoming.headers, host: new URL(serviceUrl).host, "x-voicewire-truth": "1" },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        const raw: Buffer[] = [];
        if (incoming.method === "POST") responses.push({ raw, lines: () => linesOf(raw) });
        answer.on("data", (chunk: Buffer) => raw.push(chunk));
        answer.pipe(outgoing);
      },
    );
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  return Object.assign(await listening(server), { responses });
}

/** Whole lines only: of a response that the gateway broke off, the last one may lack its end. */
function linesOf(raw: readonly Buffer[]): Line[] {
  return Buffer.concat(raw)
    .toString("utf8")
    .split("\n")
    .slice(0, -1)
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}
