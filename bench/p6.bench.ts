/** P6: what encoding Opus adds to a fan-out of mu-law, and the encoder threads against the bare library. */
import OpusScript from "opusscript";
import { type Bench, measureWindow, runBench, speakMessage, speechText, usPerFrame } from "./kit/bench.ts";
import { wait } from "./kit/monotonic.ts";
import { median } from "./kit/statistics.ts";

type PoolModule = typeof import("../src/audio/codecs/opus-pool.ts");

const LEAD_MS = 300;
const UTTERANCE_SECONDS = 10;
const TARGET_FANOUT = 1.15;
const TARGET_ENCODING = 0.9;
/** As the gateway encodes where its settings are the defaults: 24 kHz, 64 kbit/s, complexity 5, 20 ms. */
const RATE = 24_000;
const FRAME_SAMPLES = 480;
const BITRATE_KBPS = 64;
const COMPLEXITY = 5;
/** opus_defines.h: OPUS_SET_COMPLEXITY. */
const SET_COMPLEXITY = 4010;
/** Frames of one push: what a session makes at a time at the default lead. */
const FRAMES_A_PUSH = 5;
/** Frames under way at a time: enough that the thread never waits. */
const MAX_IN_FLIGHT = 100;

runBench(async (bench) => {
  const listeners = bench.pick(500, 50);
  const seconds = bench.pick(30, 2);
  const frames = bench.pick(10_000, 500);
  const rounds = bench.pick(5, 2);
  bench.method(
    `One session, ${listeners} listeners (20 ms frames, lead ${LEAD_MS} ms, so five frames every 100 ms in both forms; events=none); server CPU (all threads) per`,
    `delivered frame over ${seconds} s, ${bench.options.rounds} runs each, interleaved, medians. Opus: opus_48000 at ${BITRATE_KBPS} kbit/s, encoded by the gateway: one more`,
    "listener in alaw_8000 makes it ask the upstream for pcm_24000. Pass-through: ulaw_8000 from an upstream that sends ulaw_8000.",
    `Encoding: frames per second of CPU of the process, all its threads, ${frames} frames of 20 ms at ${RATE} Hz, ${rounds} rounds each, interleaved, medians: through`,
    `a pool of one thread, one stream, ${FRAMES_A_PUSH} frames a push, against a plain loop over opusscript with the same settings.`,
  );
  const opus: number[] = [];
  const passed: number[] = [];
  for (let round = 0; round < bench.options.rounds; round += 1) {
    opus.push(await fanOut(bench, { form: "opus", listeners, seconds }));
    passed.push(await fanOut(bench, { form: "pass-through", listeners, seconds }));
  }
  const ratio = median(opus) / median(passed);
  bench.row({
    figure: `P6 ${listeners} Opus listeners of one session, CPU per frame, against pass-through`,
    measured: `${median(opus).toFixed(2)} us`,
    baseline: `${median(passed).toFixed(2)} us (mu-law to mu-law)`,
    ratio: ratio.toFixed(2),
    target: `<= ${TARGET_FANOUT}x`,
    isOk: ratio <= TARGET_FANOUT,
  });
  await encoding(bench, { frames, rounds });
});

async function fanOut(
  bench: Bench,
  run: {
    readonly form: "opus" | "pass-through";
    readonly listeners: number;
    readonly seconds: number;
  },
): Promise<number> {
  const isOpus = run.form === "opus";
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port);
  await using load = await bench.startLoad();
  const { port } = gateway;
  const open = (group: string, count: number, query: string) =>
    load.ask("open", {
      group,
      port,
      count,
      path: `/live/p6?events=none&${query}`,
      rampMs: Math.min(2000, count * 4),
    });
  await open("speaker", 1, "role=speaker&format=none");
  if (isOpus) await open("other", 1, `role=listener&format=alaw_8000&lead_ms=${LEAD_MS}`);
  const format = isOpus ? "opus_48000" : "ulaw_8000";
  const { opened } = await open(
    "listeners",
    run.listeners,
    `role=listener&format=${format}&lead_ms=${LEAD_MS}`,
  );
  if (opened < run.listeners)
    throw new Error(`Listeners can't connect: ${opened} of ${run.listeners} are open`);
  const settleSeconds = bench.pick(5, 1);
  const utterances = Math.ceil((settleSeconds + run.seconds) / UTTERANCE_SECONDS) + 2;
  const message = speakMessage(speechText(UTTERANCE_SECONDS));
  await load.ask("send", { group: "speaker", messages: Array.from({ length: utterances }, () => message) });
  await wait(settleSeconds * 1000);
  const window = await measureWindow({
    serverPid: gateway.pid,
    load,
    group: "listeners",
    seconds: run.seconds,
  });
  const expected = run.listeners * 50 * window.seconds;
  bench.note(
    `P6 ${run.form}: ${usPerFrame(window).toFixed(2)} us/frame, ${window.frames} frames (${((100 * window.frames) / expected).toFixed(1)}% of ` +
      `${Math.round(expected)}) of ${(window.payloadBytes / window.frames).toFixed(0)} bytes; cores: server ` +
      `${(window.cpuMs / window.seconds / 1000).toFixed(2)}, load ${window.loadCores.toFixed(2)}`,
  );
  return usPerFrame(window);
}

async function encoding(
  bench: Bench,
  size: { readonly frames: number; readonly rounds: number },
): Promise<void> {
  const { createOpusPool } = (await import(
    new URL("audio/opus-pool.js", bench.options.distUrl).href
  )) as PoolModule;
  const pool = await createOpusPool({ workers: 1, bitrateKbps: BITRATE_KBPS, complexity: COMPLEXITY });
  const bare = new OpusScript(RATE, 1, OpusScript.Application.AUDIO);
  bare.setBitrate(BITRATE_KBPS * 1000);
  bare.encoderCTL(SET_COMPLEXITY, COMPLEXITY);
  const pcm = voiceLike(FRAME_SAMPLES * 500);
  const pooled: number[] = [];
  const plain: number[] = [];
  // The first round of each compiles its code.
  for (let round = 0; round <= size.rounds; round += 1) {
    const ours = await framesPerCpuSecond(size.frames, (frames) => encodePooled(pool, pcm, frames));
    const theirs = await framesPerCpuSecond(size.frames, (frames) => encodeBare(bare, pcm, frames));
    if (round === 0) continue;
    pooled.push(ours);
    plain.push(theirs);
  }
  bare.delete();
  await pool.close();
  const ratio = median(pooled) / median(plain);
  bench.row({
    figure: "P6 encoding Opus, frames per second of CPU, encoder threads against opusscript alone",
    measured: `${median(pooled).toFixed(0)}/s`,
    baseline: `${median(plain).toFixed(0)}/s (plain loop)`,
    ratio: ratio.toFixed(2),
    target: `>= ${TARGET_ENCODING}x`,
    isOk: ratio >= TARGET_ENCODING,
  });
}

async function framesPerCpuSecond(
  frames: number,
  encode: (frames: number) => Promise<void>,
): Promise<number> {
  const before = process.cpuUsage();
  await encode(frames);
  const { user, system } = process.cpuUsage(before);
  return (frames * 1e6) / (user + system);
}

type Pool = Awaited<ReturnType<PoolModule["createOpusPool"]>>;

/** Resolves with the last packet. */
function encodePooled(pool: Pool, pcm: Int16Array, frames: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let pushed = 0;
    let encoded = 0;
    const push = (): void => {
      while (pushed < frames && pushed - encoded < MAX_IN_FLIGHT) {
        stream.push(framesAt(pcm, pushed, FRAMES_A_PUSH));
        pushed += FRAMES_A_PUSH;
      }
    };
    const stream = pool.acquire(
      { sampleRate: RATE, frameSamples: FRAME_SAMPLES },
      {
        packets: (packets) => {
          encoded += packets.length;
          if (encoded < frames) push();
          else {
            stream.release();
            resolve();
          }
        },
        error: reject,
      },
    );
    push();
  });
}

function encodeBare(opus: OpusScript, pcm: Int16Array, frames: number): Promise<void> {
  let bytes = 0;
  for (let index = 0; index < frames; index += 1) {
    const frame = framesAt(pcm, index, 1);
    const buffer = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
    bytes += opus.encode(buffer, FRAME_SAMPLES).length;
  }
  if (bytes === 0) throw new Error("Opus library made no packets: expected bytes");
  return Promise.resolve();
}

/** Frames from the prepared audio, round and round. */
function framesAt(pcm: Int16Array, index: number, count: number): Int16Array {
  const at = (index * FRAME_SAMPLES) % (pcm.length - count * FRAME_SAMPLES + 1);
  const start = at - (at % FRAME_SAMPLES);
  return pcm.subarray(start, start + count * FRAME_SAMPLES);
}

/** A gliding tone with overtones, loud and soft in turn, and some noise: silence would be encoded for nothing. */
function voiceLike(samples: number): Int16Array {
  const pcm = new Int16Array(samples);
  let phase = 0;
  let noise = 1;
  for (let index = 0; index < samples; index += 1) {
    const seconds = index / RATE;
    phase += (2 * Math.PI * (140 + 40 * Math.sin(2 * Math.PI * 0.7 * seconds))) / RATE;
    noise = (Math.imul(noise, 1_103_515_245) + 12_345) & 0x7fffffff;
    const loud = 0.55 + 0.45 * Math.sin(2 * Math.PI * 4 * seconds);
    const tone = Math.sin(phase) + 0.5 * Math.sin(2 * phase) + 0.3 * Math.sin(5 * phase);
    pcm[index] = Math.round(loud * 6000 * tone + 600 * (noise / 0x3fffffff - 1));
  }
  return pcm;
}
