/** What LiveKit's speech plugins have in common, as far as the tests use it. */
import { expect } from "vitest";
import { load } from "./installed.ts";

export interface Synthesized {
  readonly frame: { readonly data: Int16Array; readonly sampleRate: number };
  readonly final: boolean;
  readonly timedTranscripts?: readonly {
    readonly text: string;
    readonly startTime?: number;
    readonly endTime?: number;
  }[];
}

/** What a reply was. */
export interface Collected {
  readonly samples: Int16Array;
  readonly words: readonly { readonly text: string; readonly startTime?: number }[];
  readonly finals: number;
}

/** Its plugins ask for it. */
export function silenceLogger(): void {
  const { initializeLogger } = load<{
    initializeLogger(options: { readonly pretty: boolean; readonly level: string }): void;
  }>("@livekit/agents");
  initializeLogger({ pretty: false, level: "silent" });
}

/** To the end. `sampleRate`: Hz, that every frame has to have. */
export async function collect(
  audio: AsyncIterable<Synthesized | symbol>,
  sampleRate: number,
): Promise<Collected> {
  const pieces: Int16Array[] = [];
  const words: { text: string; startTime?: number }[] = [];
  let finals = 0;
  for await (const one of audio) {
    if (typeof one === "symbol") continue;
    expect(one.frame.sampleRate).toBe(sampleRate);
    pieces.push(one.frame.data);
    words.push(...(one.timedTranscripts ?? []));
    if (one.final) finals += 1;
  }
  const samples = Int16Array.from(pieces.flatMap((piece) => [...piece]));
  return { samples, words, finals };
}
