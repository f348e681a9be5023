/** Phone calls: what a carrier's dialect costs beside a native listener, how soon `clear` follows an interruption, RTP's beat. */
import { type Bench, runBench, speakMessage, speechText } from "./kit/bench.ts";
import { type Ear, nativeEar, type PhonesCommands, Speaker, TwilioEar } from "./kit/call-peers.ts";
import { cpuMs } from "./kit/cpu.ts";
import { dialectCosts } from "./kit/dialect-costs.ts";
import { monotonicMs, wait } from "./kit/monotonic.ts";
import { median, percentile } from "./kit/statistics.ts";

/** As far ahead as Twilio is sent. */
const LEAD_MS = 500;
const UTTERANCE_SECONDS = 10;
/** After the calls and their speech have begun. */
const SETTLE_SECONDS = 2;
/** Interruptions that are not counted: the first ones of a process wait for its compiler. */
const WARM_UPS = 5;
const TARGET_DIALECT_US = 2;
const TARGET_CLEAR_MS = 5;
const TARGET_JITTER_MS = 5;

runBench(async (bench) => {
  const size = {
    calls: bench.pick(200, 10),
    seconds: bench.pick(20, 3),
    interrupts: bench.pick(300, 20),
    phones: bench.pick(50, 5),
    rtpSeconds: bench.pick(60, 5),
    frames: bench.pick(200_000, 10_000),
  };
  bench.method(
    `Words: each dialect's encoding of ${size.frames} frames in one process, CPU of that process, median of ${bench.options.rounds} rounds after one that warms up.`,
    `Dialect: ${size.calls} sessions that speak all the time, each with one listener: a Twilio call, or a native one with the same lead (${LEAD_MS} ms), server CPU over`,
    `${size.seconds} s, ${bench.options.rounds} rounds in turn. Clear: one call beside ${size.calls} that speak; from just before the application writes \`interrupt\` to \`clear\` at the carrier's`,
    `socket, n=${size.interrupts}, and as often from \`ping\` to \`pong\` on the same connection. RTP: ${size.phones} calls that speak, ${size.rtpSeconds} s, how far each packet is from 20 ms after the one before. Many phones are a process of`,
    "their own; it, the application with the call that is interrupted, the upstream and the gateway share the machine.",
  );
  words(bench, size);
  await dialect(bench, size);
  await clears(bench, size);
  await beat(bench, size);
});

/** Each carrier's words alone, without sockets. */
function words(bench: Bench, { frames }: { readonly frames: number }): void {
  for (const cost of dialectCosts({ frames, rounds: bench.options.rounds })) {
    const moreUs = cost.frameUs - cost.bareUs;
    bench.row({
      figure: `${cost.carrier}: CPU to put a frame of ${cost.format} into its words, batches of 5`,
      measured: `${cost.frameUs.toFixed(2)} us`,
      baseline: `${cost.bareUs.toFixed(2)} us (${cost.bare})`,
      ratio: `${moreUs >= 0 ? "+" : ""}${moreUs.toFixed(2)} us`,
      target: `<= +${TARGET_DIALECT_US} us`,
      isOk: moreUs <= TARGET_DIALECT_US,
    });
  }
}

async function speakOn(port: number, sessions: readonly string[], seconds: number): Promise<Speaker[]> {
  const message = JSON.parse(speakMessage(speechText(UTTERANCE_SECONDS))) as object;
  const speakers = await Promise.all(sessions.map((session) => Speaker.join(port, session)));
  for (const speaker of speakers) {
    for (let said = 0; said < seconds + UTTERANCE_SECONDS; said += UTTERANCE_SECONDS) speaker.send(message);
  }
  return speakers;
}

const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

async function dialect(
  bench: Bench,
  { calls, seconds }: { readonly calls: number; readonly seconds: number },
): Promise<void> {
  const costs = { twilio: [] as number[], native: [] as number[] };
  for (let round = 0; round < bench.options.rounds; round += 1) {
    for (const kind of ["twilio", "native"] as const) {
      await using upstream = await bench.startUpstream();
      await using gateway = await bench.startGateway("voicewire", upstream.port);
      const sessions = names(`${kind}-`, calls);
      const ears: Ear[] = await Promise.all(
        sessions.map((session, index) =>
          kind === "twilio"
            ? TwilioEar.dial(gateway.port, session, index)
            : nativeEar(gateway.port, session, LEAD_MS),
        ),
      );
      const speakers = await speakOn(gateway.port, sessions, seconds + 6);
      await wait(bench.pick(3000, 1000));
      const heard = (): number => ears.reduce((sum, ear) => sum + ear.frames, 0);
      const [framesBefore, cpuBefore] = [heard(), cpuMs(gateway.pid)];
      await wait(seconds * 1000);
      const frames = heard() - framesBefore;
      costs[kind].push(((cpuMs(gateway.pid) - cpuBefore) * 1000) / frames);
      bench.note(
        `${kind}, round ${round + 1}: ${costs[kind].at(-1)?.toFixed(1)} us a frame, ${frames} frames`,
      );
      for (const ear of ears) ear.close();
      for (const speaker of speakers) speaker.close();
    }
  }
  const more = median(costs.twilio) - median(costs.native);
  bench.row({
    figure: `server CPU per frame of a Twilio call, ${calls} calls`,
    measured: `${median(costs.twilio).toFixed(1)} us`,
    baseline: `${median(costs.native).toFixed(1)} us (native listener)`,
    ratio: `${more >= 0 ? "+" : ""}${more.toFixed(1)} us`,
    target: `<= +${TARGET_DIALECT_US} us`,
    isOk: more <= TARGET_DIALECT_US,
  });
}

/** p50 / p99. */
function percentiles(ms: readonly number[]): string {
  return `${percentile(ms, 0.5).toFixed(1)} / ${percentile(ms, 0.99).toFixed(1)} ms`;
}

async function clears(
  bench: Bench,
  { calls, interrupts }: { readonly calls: number; readonly interrupts: number },
): Promise<void> {
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port);
  await using phones = await bench.start<PhonesCommands>("phones", {});
  const sessions = names("beside-", calls);
  await phones.ask("dialTwilio", { port: gateway.port, sessions });
  const speakers = await speakOn(gateway.port, sessions, (interrupts + WARM_UPS) * 0.75 + SETTLE_SECONDS);
  const ear = await TwilioEar.dial(gateway.port, "cut", calls);
  const speaker = await Speaker.join(gateway.port, "cut");
  const message = JSON.parse(speakMessage(speechText(UTTERANCE_SECONDS))) as object;
  await wait(SETTLE_SECONDS * 1000);
  await gateway.startStallWatch();
  const tookMs: number[] = [];
  const pingMs: number[] = [];
  for (let index = -WARM_UPS; index < interrupts; index += 1) {
    const before = ear.frames;
    speaker.send(message);
    while (ear.frames < before + 30) await wait(5);
    await wait(37 + (Math.abs(index) % 7) * 11);
    const ping = await speaker.ping();
    await wait(7 + (Math.abs(index) % 5) * 9);
    const cleared = ear.cleared();
    const startMs = monotonicMs();
    speaker.send({ type: "interrupt" });
    const ms = (await cleared) - startMs;
    if (index < 0) continue;
    tookMs.push(ms);
    pingMs.push(ping);
  }
  bench.note(`clear: longest stall of the gateway's loop ${(await gateway.stopStallWatch()).toFixed(1)} ms`);
  for (const end of [...speakers, ear, speaker]) end.close();
  await phones.ask("hangUp", undefined);
  bench.row({
    figure: `interrupt -> clear at the carrier's socket, p50 / p99 (n=${interrupts}), beside ${calls} calls`,
    measured: percentiles(tookMs),
    baseline: `${percentiles(pingMs)} (ping -> pong)`,
    ratio: "",
    target: `<= ${TARGET_CLEAR_MS} ms`,
    isOk: percentile(tookMs, 0.99) <= TARGET_CLEAR_MS,
  });
}

async function beat(
  bench: Bench,
  { phones: count, rtpSeconds }: { readonly phones: number; readonly rtpSeconds: number },
): Promise<void> {
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port);
  await using phones = await bench.start<PhonesCommands>("phones", {});
  const sessions = names("rtp-", count);
  await phones.ask("callRtp", { port: gateway.port, sessions });
  const speakers = await speakOn(gateway.port, sessions, rtpSeconds + SETTLE_SECONDS);
  await wait(SETTLE_SECONDS * 1000);
  await gateway.startStallWatch();
  await phones.startStallWatch();
  await phones.ask("restartBeat", undefined);
  await wait(rtpSeconds * 1000);
  // Before the phones count: that takes a while.
  const [gatewayMs, phonesMs] = [await gateway.stopStallWatch(), await phones.stopStallWatch()];
  const beat = await phones.ask("beat", undefined);
  await phones.ask("hangUp", undefined);
  for (const speaker of speakers) speaker.close();
  bench.note(
    `RTP: RFC 3550 jitter, p99 over the calls: ${beat.jitterMs.toFixed(2)} ms; ${beat.backToBack} packets in a burst with the one before`,
  );
  bench.note(
    `RTP: longest stall of the gateway's loop ${gatewayMs.toFixed(1)} ms, of the phones' ${phonesMs.toFixed(1)} ms`,
  );
  bench.row({
    figure: `RTP packets off their 20 ms, p50 / p99 (${beat.packets} packets, ${count} calls)`,
    measured: `${beat.offP50Ms.toFixed(2)} / ${beat.offP99Ms.toFixed(2)} ms, ${beat.sequenceErrors} sequence errors, ${beat.skipped} frames left out`,
    baseline: "",
    ratio: "",
    target: `p99 <= ${TARGET_JITTER_MS} ms, no sequence error`,
    isOk: beat.offP99Ms <= TARGET_JITTER_MS && beat.sequenceErrors === 0,
  });
}
