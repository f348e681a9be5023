/** Runs inside the browser: the page's own playout into an offline context, and how well it held together. */
import { SpeakerOut } from "../../src/page/sound/audio-out.ts";
import { Playout } from "../../src/page/sound/playout.ts";

declare global {
  interface Window {
    worstStep?: (
      blockSamples: readonly number[],
    ) => Promise<{ worst: number; silent: number; played: number }>;
  }
}

const HERTZ = 441;
const RATE = 48_000;

/** Plays a sine cut into blocks; returns the worst deviation from the unbroken sine once it sounds. */
window.worstStep = async (blockSamples) => {
  const total = blockSamples.reduce((sum, count) => sum + count, 0);
  const context = new OfflineAudioContext(1, total + RATE / 10, RATE);
  // The offline context has all that SpeakerOut uses; only its type is another.
  const playout = new Playout(new SpeakerOut(context as unknown as AudioContext));
  const sine = (index: number) => Math.sin((2 * Math.PI * HERTZ * index) / RATE);
  let at = 0;
  for (const count of blockSamples) {
    playout.push(
      Float32Array.from({ length: count }, (_, index) => sine(at + index)),
      (at / RATE) * 1000,
    );
    at += count;
  }
  const heard = (await context.startRendering()).getChannelData(0);
  // The jitter delay of 60 ms comes first.
  const from = (RATE * 60) / 1000;
  let worst = 0;
  for (let index = 0; index < total; index += 1) {
    worst = Math.max(worst, Math.abs((heard[from + index] ?? 0) - sine(index)));
  }
  const silent = heard.subarray(0, from).findIndex((sample) => sample !== 0);
  return { worst, silent, played: total };
};
