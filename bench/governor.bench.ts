/** How long a crowd takes through an upstream's limit: the gateway, which has to find it out, against a client that keeps to it. */
import { type Bench, runBench } from "./kit/bench.ts";
import type { GovernorUpstreamOptions } from "./kit/governor-upstream.ts";
import type { LimitedServiceOptions, NoCommands } from "./kit/limited-service.ts";
import { monotonicMs } from "./kit/monotonic.ts";
import { median } from "./kit/statistics.ts";

/** The plan's limit for standard models. */
const LIMIT = 5;
const TIER = "creator";
const MODEL = "eleven_multilingual_v2";
/** Of another group: what is learned of it says nothing of the other. */
const WARM_MODEL = "eleven_flash_v2_5";
const VOICE = "21m00Tcm4TlvDq8ikWAM";
const MAX_RATIO = 1.05;
const WORDS = "the ship left the harbour in the early morning while the town was still asleep".split(" ");

interface Crowd {
  readonly makespanMs: number;
  readonly statuses: readonly number[];
}

runBench(async (bench) => {
  const requests = bench.pick(100, 20);
  const stallMs = bench.pick(200, 50);
  const { rounds, distUrl } = bench.options;
  bench.method(
    `${requests} requests for speech of a sentence each, to the embedded service in a process of its own on a plan that lets ${LIMIT} through at once; its answers stand`,
    `still for ${stallMs} ms, so that the limit decides and not the CPU. Ideal: a client that asks the service directly and keeps exactly ${LIMIT} open. Gateway: all at once to one that`,
    `was just started and knows of no limit, and all at once again. From the first request to the last byte of the last answer; ${rounds} rounds in turn, medians.`,
    "Where others use the machine, the service's engine takes longer than it stands still, and the CPU decides: the same once more with an upstream that only waits,",
    `and a gateway that has answered ${requests} requests for another model. Beside the ideal: the waves that the limit makes, each as long as one request takes alone.`,
  );
  const service: LimitedServiceOptions = { distUrl, tier: TIER, stallMs };
  await compare(bench, { requests, upstream: "limited-service", options: service, isWarm: false });
  const waiting: GovernorUpstreamOptions = { limit: LIMIT, headMs: stallMs, restMs: stallMs / 4 };
  await compare(bench, { requests, upstream: "governor-upstream", options: waiting, isWarm: true });
});

interface Comparison {
  readonly requests: number;
  readonly upstream: "limited-service" | "governor-upstream";
  readonly options: object;
  /** Whether the gateway has worked before, though not for this model. */
  readonly isWarm: boolean;
}

async function compare(bench: Bench, { requests, upstream, options, isWarm }: Comparison): Promise<void> {
  const ideal: number[] = [];
  const first: number[] = [];
  const again: number[] = [];
  let refused = 0;
  await using service = await bench.start<NoCommands>(upstream, options);
  // The engine's threads load what they need.
  await crowd(service.port, { requests: 2 * LIMIT, width: LIMIT });
  const alone = await crowd(service.port, { requests: LIMIT, width: 1 });
  const wavesMs = (Math.ceil(requests / LIMIT) * alone.makespanMs) / LIMIT;
  for (let round = 0; round < bench.options.rounds; round += 1) {
    const direct = await crowd(service.port, { requests, width: LIMIT });
    if (direct.statuses.some((status) => status !== 200))
      throw new Error("The ideal client was refused, expected 200");
    ideal.push(direct.makespanMs);
    await using gateway = await bench.startGateway("voicewire", service.port);
    if (isWarm) await crowd(gateway.port, { requests, width: LIMIT, model: WARM_MODEL });
    for (const makespans of [first, again]) {
      const { makespanMs, statuses } = await crowd(gateway.port, { requests, width: requests });
      makespans.push(makespanMs);
      refused += statuses.filter((status) => status !== 200).length;
    }
    bench.note(
      `${upstream}, round ${round + 1}: waves ${wavesMs.toFixed(0)} ms, ideal ${ideal.at(-1)?.toFixed(0)} ms, limit unknown ${first.at(-1)?.toFixed(0)} ms, known ${again.at(-1)?.toFixed(0)} ms`,
    );
  }
  const where = isWarm ? ", upstream only waits" : "";
  report(bench, { figure: `limit unknown${where}`, requests, ideal, makespans: first, refused });
  report(bench, { figure: `limit known${where}`, requests, ideal, makespans: again, refused });
}

function report(
  bench: Bench,
  run: {
    readonly figure: string;
    readonly requests: number;
    readonly ideal: readonly number[];
    readonly makespans: readonly number[];
    /** Of all rounds together. */
    readonly refused: number;
  },
): void {
  const ratio = median(run.makespans) / median(run.ideal);
  bench.row({
    figure: `R4 makespan of ${run.requests} requests at a limit of ${LIMIT}, ${run.figure}`,
    measured: `${median(run.makespans).toFixed(0)} ms, ${run.refused} refused`,
    baseline: `${median(run.ideal).toFixed(0)} ms (a client that keeps ${LIMIT} open)`,
    ratio: ratio.toFixed(3),
    target: `<= ${MAX_RATIO}x, none refused`,
    isOk: ratio <= MAX_RATIO && run.refused === 0,
  });
}

/** All requests, `width` of them open at a time. */
async function crowd(
  port: number,
  run: { readonly requests: number; readonly width: number; readonly model?: string },
): Promise<Crowd> {
  const { requests, width, model = MODEL } = run;
  const statuses: number[] = [];
  let next = 0;
  const startMs = monotonicMs();
  const lane = async (): Promise<void> => {
    while (next < requests) {
      const index = next;
      next += 1;
      statuses[index] = await ask(port, index, model);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  return { makespanMs: monotonicMs() - startMs, statuses };
}

/** The status, once the last byte is there. */
async function ask(port: number, index: number, model: string): Promise<number> {
  const start = index % WORDS.length;
  const text = `Number ${index}: ${[...WORDS.slice(start), ...WORDS.slice(0, start)].join(" ")}.`;
  const answer = await fetch(
    `http://127.0.0.1:${port}/v1/text-to-speech/${VOICE}/stream?output_format=ulaw_8000`,
    {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text, model_id: model }),
    },
  );
  await answer.arrayBuffer();
  return answer.status;
}
