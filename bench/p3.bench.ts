/** P3: first audio byte at the gateway to the first frame on the client's socket, with a hundred live streams. */
import { type Bench, type Contestant, runBench, speechText } from "./kit/bench.ts";
import type { TurnSample } from "./kit/commands.ts";
import { percentile } from "./kit/statistics.ts";

const SPEECH_SECONDS = 3;
const TARGET_P50_MS = 0.3;
const TARGET_P99_MS = 2;

interface Latencies {
  /** The gateway's own stamp. */
  readonly stamps: number[];
  /** Upstream's first byte written -> client's first frame received. */
  readonly wires: number[];
}

runBench(async (bench) => {
  const streams = bench.pick(100, 20);
  const turns = bench.pick(6, 2);
  const seconds = bench.pick(SPEECH_SECONDS, 1);
  bench.method(
    `${streams} sessions at once, each says ${seconds} s, pauses 0.3-0.9 s and says the next, ${turns} turns each after one that is not counted;`,
    "stamp: the gateway's latency.first_frame_ms (utterance.done); wire: from just before the upstream fixture writes its",
    `first byte to the first frame's arrival at the client (CLOCK_MONOTONIC in both). ${bench.options.rounds} runs each, interleaved.`,
  );
  const all = new Map<Contestant, Latencies>();
  for (let round = 0; round < bench.options.rounds; round += 1) {
    for (const contestant of bench.contestants) {
      const latencies = await measure(bench, { contestant, streams, turns, seconds });
      const sofar = all.get(contestant) ?? { stamps: [], wires: [] };
      all.set(contestant, {
        stamps: [...sofar.stamps, ...latencies.stamps],
        wires: [...sofar.wires, ...latencies.wires],
      });
    }
  }
  report(bench, all);
});

function report(bench: Bench, all: ReadonlyMap<Contestant, Latencies>): void {
  const own = all.get("voicewire") ?? { stamps: [], wires: [] };
  const baseline = all.get("baseline") ?? { stamps: [], wires: [] };
  const against = all.get("against");
  const stamp = [percentile(own.stamps, 0.5), percentile(own.stamps, 0.99)] as const;
  bench.row({
    figure: `P3 first audio byte -> first frame, gateway's stamp, p50 / p99 (n=${own.stamps.length})`,
    measured: `${pair(own.stamps)} ms`,
    baseline: against === undefined ? "" : `${pair(against.stamps)} ms (other build)`,
    ratio: "",
    target: `p50 <= ${TARGET_P50_MS}, p99 <= ${TARGET_P99_MS} ms`,
    isOk: stamp[0] <= TARGET_P50_MS && stamp[1] <= TARGET_P99_MS,
  });
  const rivals = [
    { name: "ws + fetch + timer", wires: baseline.wires },
    ...(against === undefined ? [] : [{ name: "other build", wires: against.wires }]),
  ];
  for (const rival of rivals) {
    bench.row({
      figure: `P3 upstream's first byte -> client's first frame, p50 / p99 (n=${own.wires.length})`,
      measured: `${pair(own.wires)} ms`,
      baseline: `${pair(rival.wires)} ms (${rival.name})`,
      ratio: `${ratioAt(own.wires, rival.wires, 0.5)} / ${ratioAt(own.wires, rival.wires, 0.99)}`,
      target: "",
      isOk: null,
    });
  }
}

async function measure(
  bench: Bench,
  run: {
    readonly contestant: Contestant;
    readonly streams: number;
    readonly turns: number;
    readonly seconds: number;
  },
): Promise<Latencies> {
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway(run.contestant, upstream.port);
  await using load = await bench.startLoad();
  await load.ask("open", {
    group: "streams",
    port: gateway.port,
    count: run.streams,
    path: "/live/p3-{i}?format=ulaw_8000&events=none",
    rampMs: 500,
    wantsText: true,
  });
  const { samples, failed } = await load.ask("turns", {
    group: "streams",
    rounds: run.turns + 1,
    text: speechText(run.seconds, { isKeyed: true }),
    voiceId: "bench",
    deadlineMs: (run.seconds + 5) * 1000,
    pauseMs: 600,
  });
  const records = await upstream.ask("records", undefined);
  const firstBytes = new Map(records.map((record) => [record.key, record.firstByteMs]));
  if (failed > 0) bench.note(`P3 ${run.contestant}: ${failed} turns had no frame or no end in time`);
  const counted = samples.filter((sample) => sample.round > 0);
  return {
    stamps: counted.flatMap(({ stampMs }) => (stampMs === null ? [] : [stampMs])),
    wires: counted.flatMap((sample: TurnSample) => {
      const firstByteMs = firstBytes.get(sample.key);
      return firstByteMs === undefined ? [] : [sample.firstFrameMs - firstByteMs];
    }),
  };
}

function pair(samples: readonly number[]): string {
  return `${percentile(samples, 0.5).toFixed(2)} / ${percentile(samples, 0.99).toFixed(2)}`;
}

function ratioAt(own: readonly number[], other: readonly number[], fraction: number): string {
  return (percentile(own, fraction) / percentile(other, fraction)).toFixed(2);
}
