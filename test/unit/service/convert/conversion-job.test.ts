import { afterEach, describe, expect, it } from "vitest";
import { ConversionJob } from "../../../../src/service/convert/conversion-job.ts";
import { createConverterThreads } from "../../../../src/service/convert/conversion-pool.ts";
import { ENVELOPE_BANDS } from "../../../../src/service/convert/envelope.ts";
import type { PcmPiece } from "../../../../src/service/media/pieces.ts";

const RATE = 24_000;
const TARGET = { pitchHz: 200, envelope: new Array<number>(ENVELOPE_BANDS).fill(0) };

async function* hum(seconds: number): AsyncGenerator<PcmPiece> {
  const pcm = new Int16Array(seconds * RATE).map(
    (_, at) =>
      8000 * Math.sin((2 * Math.PI * 120 * at) / RATE) + 4000 * Math.sin((2 * Math.PI * 360 * at) / RATE),
  );
  yield { pcm, sampleRate: RATE };
}

const pools: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

/** A conversion to pcm_48000; what was reported, and how to say that bytes have left. */
function convert(source: AsyncIterable<PcmPiece>, stallMs: number) {
  const reported: string[] = [];
  let bytes = 0;
  let end = (): void => undefined;
  const isOver = new Promise<void>((resolve) => {
    end = resolve;
  });
  const pool = createConverterThreads({ stallMs });
  pools.push(pool);
  const job = new ConversionJob(
    pool,
    { kind: "convert", target: TARGET, format: "pcm_48000", removesNoise: false },
    {
      source,
      handlers: {
        chunk: (chunk) => {
          bytes += chunk.length;
        },
        done: () => {
          reported.push("done");
          end();
        },
        failed: (thrown) => {
          reported.push(String(thrown));
          end();
        },
      },
    },
  );
  const takeAll = (): void => {
    job.acknowledge(bytes);
    bytes = 0;
  };
  return { reported, isOver, takeAll, unsent: () => bytes };
}

describe("a conversion", { timeout: 30_000 }, () => {
  it("fails when its thread owes an answer and is silent", async () => {
    // Shorter than any thread takes to start.
    const { reported, isOver } = convert(hum(1), 1);
    await isOver;
    expect(reported).toEqual(["GatewayError: Cannot convert the voice: the thread was silent for 1 ms"]);
  });

  it("waits for a client that takes nothing, and for a source that gives nothing", async () => {
    const stallMs = 1500;
    async function* slow(): AsyncGenerator<PcmPiece> {
      yield* hum(6);
      await new Promise((resolve) => setTimeout(resolve, 2 * stallMs));
      yield* hum(1);
    }
    const { reported, isOver, takeAll, unsent } = convert(slow(), stallMs);
    await expect.poll(unsent, { timeout: 10_000 }).toBeGreaterThan(262_144);
    await new Promise((resolve) => setTimeout(resolve, 2 * stallMs));
    expect(reported).toEqual([]);
    const taking = setInterval(takeAll, 20);
    await isOver;
    clearInterval(taking);
    expect(reported).toEqual(["done"]);
  });
});
