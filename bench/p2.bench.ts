/** P2: fan-out of one session to a thousand listeners against bare uWebSockets.js, Nchan and nats-server. */
import { type Bench, measureWindow, runBench, speakMessage, speechText } from "./kit/bench.ts";
import type { FanoutCommands, LoadCommands } from "./kit/commands.ts";
import { type ExternalKind, natsKind, nchanKind } from "./kit/external.ts";
import type { Fixture } from "./kit/fixture.ts";
import { wait } from "./kit/monotonic.ts";
import { median } from "./kit/statistics.ts";

const LEAD_MS = 300;
/** What the gateway's pacer does at this lead: five frames every 100 ms. */
const FRAMES_PER_BATCH = 5;
const UTTERANCE_SECONDS = 10;

interface Rival {
  readonly name: string;
  readonly targetRatio: number;
  readonly measure: (bench: Bench, size: Size) => Promise<number>;
}

interface Size {
  readonly listeners: number;
  readonly settleSeconds: number;
  readonly windowSeconds: number;
}

runBench(async (bench) => {
  const size: Size = {
    listeners: bench.pick(1000, 50),
    settleSeconds: bench.pick(5, 1),
    windowSeconds: bench.pick(20, 2),
  };
  bench.method(
    `One session, ${size.listeners} listeners (ulaw_8000, 20 ms, lead ${LEAD_MS} ms: ${FRAMES_PER_BATCH} frames every 100 ms, events=none); server CPU per`,
    `delivered frame over ${size.windowSeconds} s after ${size.settleSeconds} s, fresh processes for each run, ${bench.options.rounds} runs each, interleaved, medians.`,
    "Rivals get the same 160 bytes: bare uWebSockets.js in the same batches; Nchan and nats-server as they are used,",
    "one published message a frame (nats-server joins what it can itself).",
  );
  const rivals: Rival[] = [
    { name: "bare uWebSockets.js", targetRatio: 1.15, measure: measureBare },
    ...installed(bench, [
      { kind: nchanKind(), targetRatio: 0.25 },
      { kind: natsKind(), targetRatio: 0.2 },
    ]),
  ];
  const own: number[] = [];
  const others = rivals.map((): number[] => []);
  for (let round = 0; round < bench.options.rounds; round += 1) {
    own.push(await measureOwn(bench, size, round));
    for (const [index, rival] of rivals.entries()) others[index]?.push(await rival.measure(bench, size));
  }
  for (const [index, rival] of rivals.entries()) {
    const ratio = median(own) / median(others[index] ?? []);
    bench.row({
      figure: `P2 fan-out, CPU per frame, against ${rival.name}`,
      measured: `${median(own).toFixed(2)} us`,
      baseline: `${median(others[index] ?? []).toFixed(2)} us`,
      ratio: ratio.toFixed(2),
      target: `<= ${rival.targetRatio}x`,
      isOk: ratio <= rival.targetRatio,
    });
  }
});

function installed(
  bench: Bench,
  candidates: readonly { readonly kind: ExternalKind; readonly targetRatio: number }[],
): Rival[] {
  return candidates.flatMap(({ kind, targetRatio }) => {
    if (kind.isInstalled) {
      return [
        {
          name: kind.name,
          targetRatio,
          measure: (current: Bench, size: Size) => measureExternal(current, size, kind),
        },
      ];
    }
    bench.row({
      figure: `P2 fan-out, CPU per frame, against ${kind.name}`,
      measured: "",
      baseline: `not installed: ${kind.howTo}`,
      ratio: "",
      target: `<= ${targetRatio}x`,
      isOk: null,
    });
    return [];
  });
}

async function measureOwn(bench: Bench, size: Size, round: number): Promise<number> {
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port);
  await using load = await bench.startLoad();
  await load.ask("open", {
    group: "speaker",
    port: gateway.port,
    count: 1,
    path: "/live/p2?role=speaker&format=none&events=none",
    rampMs: 0,
  });
  await openListeners(load, {
    port: gateway.port,
    count: size.listeners,
    path: `/live/p2?role=listener&format=ulaw_8000&events=none&lead_ms=${LEAD_MS}`,
  });
  const utterances = Math.ceil((size.settleSeconds + size.windowSeconds) / UTTERANCE_SECONDS) + 2;
  const message = speakMessage(speechText(UTTERANCE_SECONDS));
  await load.ask("send", { group: "speaker", messages: Array.from({ length: utterances }, () => message) });
  return await bench.profiled(gateway, `p2-${round}`, () =>
    measure(bench, { name: "voicewire", pid: gateway.pid, load, size }),
  );
}

async function measureBare(bench: Bench, size: Size): Promise<number> {
  await using server = await bench.start<FanoutCommands>("uws-fanout", { framesPerBatch: FRAMES_PER_BATCH });
  await using load = await bench.startLoad();
  await openListeners(load, { port: server.port, count: size.listeners, path: "/" });
  await server.ask("start", undefined);
  return await measure(bench, { name: "bare uWebSockets.js", pid: server.pid, load, size });
}

async function measureExternal(bench: Bench, size: Size, kind: ExternalKind): Promise<number> {
  await using server = await kind.start();
  await using load = await bench.startLoad();
  await openListeners(load, {
    port: server.port,
    count: size.listeners,
    path: server.path,
    messages: server.messages,
  });
  await server.publish();
  const { name } = kind;
  return await measure(bench, {
    name,
    pid: server.pid,
    load,
    size,
    payloadBytesPerFrame: server.payloadBytesPerFrame,
  });
}

async function openListeners(
  load: Fixture<LoadCommands>,
  listeners: {
    readonly port: number;
    readonly count: number;
    readonly path: string;
    readonly messages?: readonly string[];
  },
): Promise<void> {
  const { opened } = await load.ask("open", {
    group: "listeners",
    rampMs: Math.min(2000, listeners.count * 4),
    ...listeners,
  });
  if (opened < listeners.count) {
    throw new Error(`Listeners can't connect: ${opened} of ${listeners.count} are open`);
  }
}

async function measure(
  bench: Bench,
  run: {
    readonly name: string;
    readonly pid: number;
    readonly load: Fixture<LoadCommands>;
    readonly size: Size;
    readonly payloadBytesPerFrame?: number;
  },
): Promise<number> {
  const { size, load } = run;
  await wait(size.settleSeconds * 1000);
  const window = await measureWindow({
    serverPid: run.pid,
    load,
    group: "listeners",
    seconds: size.windowSeconds,
  });
  const frames = window.payloadBytes / (run.payloadBytesPerFrame ?? 160);
  const us = (window.cpuMs * 1000) / frames;
  const expected = size.listeners * 50 * window.seconds;
  bench.note(
    `P2 ${run.name}: ${us.toFixed(2)} us/frame, ${Math.round(frames)} frames (${((100 * frames) / expected).toFixed(1)}% ` +
      `of ${Math.round(expected)}) in ${window.frames} messages; cores: server ` +
      `${(window.cpuMs / window.seconds / 1000).toFixed(2)}, load ${window.loadCores.toFixed(2)}`,
  );
  return us;
}
