/** What the gateway adds to each speech service's first audio; voices that are not equally loud; a service that dies. */
import type { ServiceConfig } from "../src/upstream/services/service-config.ts";
import { measureLoudness } from "../test/kit/loudness-meter.ts";
import { toldWords } from "../test/kit/told-words.ts";
import { countTones } from "../test/kit/tones.ts";
import { wordsOf } from "../test/kit/vendors/spoken.ts";
import { type Bench, runBench } from "./kit/bench.ts";
import type { ScriptedServicesCommands, ScriptedServicesOptions } from "./kit/commands.ts";
import { type DirectClient, directClient } from "./kit/direct-client.ts";
import type { Fixture } from "./kit/fixture.ts";
import { wait } from "./kit/monotonic.ts";
import { FIRST, SCRIPTED_SERVICES } from "./kit/scripted-services.ts";
import { SpeakingClient, type SpokenUtterance } from "./kit/speaking-client.ts";
import { median, percentile } from "./kit/statistics.ts";

const WORK_MS = 60;
const MAX_RATIO = 1.03;
/** Beyond what is added to the first vendor's. */
const MAX_MORE_MS = 0.3;
const FORMAT = "ulaw_8000";
const SHORT_TEXT = "Good morning.";
/** Rounds that are not counted: they open connections and compile the way. */
const WARM_UP = 10;
const PAUSE_MS = 5;
/** It speaks at the pace of speech, so it takes a second each time. */
const BY_HAND_EVERY = 3;

const LOUDNESS_LUFS = -19;
const MAX_DIFFERENCE_LU = 1.5;
/** The one is a quarter of the other: 12 dB. */
const LEVELS = { loud: 1, quiet: 0.25 };

const PLACES = 40;
const RATE = 24_000;
const LONG_TEXT = "The quick brown fox jumps over the lazy dog, and nobody dares to wake it.";
/** The two services that each voice has, the preferred one first. */
const TWO_SERVICES = [
  ["cartesia", "kokoro"],
  ["kokoro", "cartesia"],
] as const;

type Services = Fixture<ScriptedServicesCommands>;

runBench(async (bench) => {
  const rounds = bench.pick(100, 2);
  const places = bench.pick(PLACES, 4);
  bench.method(
    `Scripted services in a process of their own: each answers exactly ${WORK_MS} ms after it was asked, with speech in pieces. First audio: from the call to the first decoded`,
    `byte (direct: undici, ws or a TCP socket, and the adapter's own request), or from \`speak\` to the first frame at the listener (${FORMAT}, default events, pace=burst, trim-ms 0).`,
    `${rounds} rounds; in each every service is asked directly and through the gateway in turn, one request at a time. Added: p50 through the gateway less p50 direct.`,
    "Both open a WebSocket or a Wyoming connection for every request, and keep their HTTP connection.",
    `Beside them a gateway of \`ws\`, fetch and a timer, written by hand, asks the first upstream in one round of ${BY_HAND_EVERY}: what any gateway in Node adds on this machine.`,
    `Loudness: two voices 12 dB apart, loudness-lufs ${LOUDNESS_LUFS}; what the listener got, by another meter than the gateway's.`,
    `A service that dies: a voice at two services, the first of which ends its answer at each of ${places} places, reset or cut. Words by the events, and by the tones in the sound.`,
  );
  await measureFirstAudio(bench, { rounds, warmUp: bench.pick(WARM_UP, 1) });
  await measureLoudVoices(bench, bench.pick(10, 2));
  for (const pair of TWO_SERVICES) await measureDeaths(bench, pair, places);
});

// ---- first audio -------------------------------------------------------------------------------------------------

interface Ways {
  readonly direct: DirectClient;
  readonly client: SpeakingClient;
  readonly voiceId: string;
  readonly directMs: number[];
  readonly gatewayMs: number[];
}

async function measureFirstAudio(
  bench: Bench,
  { rounds, warmUp }: { readonly rounds: number; readonly warmUp: number },
): Promise<void> {
  await using services = await startServices(bench, { workMs: WORK_MS });
  const urls = await services.ask("urls", undefined);
  await using gateway = await bench.startGateway(
    "voicewire",
    portOf(urls),
    { trimMs: 0 },
    { services: configsOf(urls) },
  );
  const ways = new Map<string, Ways>();
  for (const [name, service] of Object.entries(SCRIPTED_SERVICES)) {
    const client = await SpeakingClient.open(gateway.port, `/live/${name}?format=${FORMAT}&pace=burst`);
    const direct = directClient({ name, service, url: urls[name] ?? "", format: FORMAT });
    ways.set(name, { direct, client, voiceId: voiceOf(name), directMs: [], gatewayMs: [] });
  }
  const first = ways.get(FIRST);
  if (first === undefined) throw new Error("The first upstream was not measured");
  await using byHand = await bench.startGateway("baseline", portOf(urls));
  using handClient = await SpeakingClient.open(byHand.port, "/");
  const byHandMs: number[] = [];
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const [name, way] of ways) await askBothWays(name, way, round);
    if (round % BY_HAND_EVERY !== 0) continue;
    const { firstFrameMs } = await handClient.say({ text: SHORT_TEXT, voice_id: first.voiceId });
    if (round >= 0) byHandMs.push(firstFrameMs);
  }
  for (const { client } of ways.values()) client[Symbol.dispose]();
  for (const [name, way] of ways) reportFirstAudio(bench, name, way, addedMs(first));
  reportByHand(bench, byHandMs, first);
}

/** No target: what the machine takes for the way there and back, whatever the gateway. */
function reportByHand(bench: Bench, byHandMs: readonly number[], first: Ways): void {
  const directMs = median(first.directMs);
  bench.row({
    figure: `services: first audio of the first upstream through a gateway written by hand, p50 / p95 (n=${byHandMs.length})`,
    measured: `${shown(byHandMs)}, ${(median(byHandMs) - directMs).toFixed(2)} ms added`,
    baseline: `${shown(first.directMs)} (direct); ${addedMs(first).toFixed(2)} ms added by voicewire`,
    ratio: (median(byHandMs) / directMs).toFixed(3),
    target: "",
    isOk: true,
  });
}

async function askBothWays(name: string, way: Ways, round: number): Promise<void> {
  const ask = {
    direct: async () => way.direct(SHORT_TEXT),
    gateway: async () => {
      const { firstFrameMs, done } = await way.client.say({ text: SHORT_TEXT, voice_id: way.voiceId });
      if (done.outcome !== "done") throw new Error(`${name} did not speak: ${JSON.stringify(done.error)}`);
      return firstFrameMs;
    },
  };
  // Whichever comes first finds the processors as the other left them.
  const order = round % 2 === 0 ? (["direct", "gateway"] as const) : (["gateway", "direct"] as const);
  for (const each of order) {
    const ms = await ask[each]();
    if (Number.isNaN(ms)) throw new Error(`${name} (${each}) sent no audio`);
    if (round >= 0) (each === "direct" ? way.directMs : way.gatewayMs).push(ms);
    await wait(PAUSE_MS);
  }
}

function addedMs({ directMs, gatewayMs }: Ways): number {
  return median(gatewayMs) - median(directMs);
}

function reportFirstAudio(bench: Bench, name: string, way: Ways, firstAddedMs: number): void {
  const { directMs, gatewayMs } = way;
  const ratio = median(gatewayMs) / median(directMs);
  const added = addedMs(way);
  const more = added - firstAddedMs;
  const isFirst = name === FIRST;
  bench.row({
    figure: `services: first audio of ${isFirst ? "the first upstream" : name}, p50 / p95 (n=${gatewayMs.length})`,
    measured: `${shown(gatewayMs)}, ${added.toFixed(2)} ms added`,
    baseline: `${shown(directMs)} (direct)${isFirst ? "" : `; ${firstAddedMs.toFixed(2)} ms added to the first upstream`}`,
    ratio: ratio.toFixed(3),
    target: isFirst ? `<= ${MAX_RATIO}x` : `<= ${MAX_RATIO}x, <= ${MAX_MORE_MS} ms more than the first`,
    isOk: ratio <= MAX_RATIO && (isFirst || more <= MAX_MORE_MS),
  });
}

function shown(samples: readonly number[]): string {
  return `${percentile(samples, 0.5).toFixed(2)} / ${percentile(samples, 0.95).toFixed(2)} ms`;
}

// ---- loudness ----------------------------------------------------------------------------------------------------

async function measureLoudVoices(bench: Bench, utterances: number): Promise<void> {
  await using services = await startServices(bench, { workMs: 0, levels: LEVELS });
  const urls = await services.ask("urls", undefined);
  await using gateway = await bench.startGateway("voicewire", portOf(urls), { loudnessLufs: LOUDNESS_LUFS });
  await using plain = await bench.startGateway("voicewire", portOf(urls));
  const apart = await differences(plain.port, 1);
  const levelled = await differences(gateway.port, utterances);
  const row = (what: string, some: readonly number[]): void => {
    const worst = Math.max(...some);
    bench.row({
      figure: `services: two voices 12 dB apart, difference of ${what} (n=${some.length})`,
      measured: `${worst.toFixed(2)} LU at most`,
      baseline: `${Math.max(...apart).toFixed(2)} LU without loudness-lufs`,
      ratio: "",
      target: `<= ${MAX_DIFFERENCE_LU} LU`,
      isOk: worst <= MAX_DIFFERENCE_LU,
    });
  };
  row("their first utterances", levelled.slice(0, 1));
  row("later ones", levelled.slice(1));
}

/** How far apart the two voices are at the listener, LU: in their first utterance, their second, and so on. */
async function differences(port: number, utterances: number): Promise<number[]> {
  using client = await SpeakingClient.open(port, `/live/loudness?format=pcm_${RATE}&pace=burst&events=none`);
  const apart: number[] = [];
  for (let index = 0; index < utterances; index += 1) {
    const loudness: number[] = [];
    for (const voiceId of Object.keys(LEVELS)) {
      const { audio, done } = await client.say({ text: LONG_TEXT, voice_id: voiceId });
      if (done.outcome !== "done") throw new Error(`${voiceId} did not speak`);
      loudness.push(measureLoudness(samplesOf(audio), RATE).lufs);
    }
    const [loud = Number.NaN, quiet = Number.NaN] = loudness;
    apart.push(Math.abs(loud - quiet));
  }
  return apart;
}

function samplesOf(audio: Buffer): Int16Array {
  return Int16Array.from({ length: audio.length >> 1 }, (_, index) => audio.readInt16LE(2 * index));
}

// ---- a service that dies -----------------------------------------------------------------------------------------

interface Losses {
  lost: number;
  doubled: number;
  failed: number;
  recovered: number;
}

async function measureDeaths(bench: Bench, pair: readonly [string, string], places: number): Promise<void> {
  const [service, other] = pair;
  await using services = await startServices(bench, { workMs: 0 });
  const urls = await services.ask("urls", undefined);
  const voices = [{ name: "anna", upstreamVoices: pair.map(voiceOf) }];
  await using gateway = await bench.startGateway(
    "voicewire",
    portOf(urls),
    { graceMs: 0 },
    { services: configsOf(urls), voices, isQuiet: true },
  );
  const losses: Losses = { lost: 0, doubled: 0, failed: 0, recovered: 0 };
  for (let place = 0; place < places; place += 1) {
    const path = (what: string) => `/live/${what}-${place}?format=pcm_${RATE}&pace=burst`;
    // A request that is answered: what happens at one place is not to be felt at the next.
    await services.ask("mend", { service });
    using mended = await SpeakingClient.open(gateway.port, path("mend"));
    await mended.say({ text: "Fine.", voice_id: voiceOf(service) });
    await services.ask("kill", { service, place, places });
    using client = await SpeakingClient.open(gateway.port, path("kill"));
    count(losses, await client.say({ text: LONG_TEXT, voice_id: "anna" }));
  }
  bench.row({
    figure: `services: ${service} dies at each of ${places} places, ${other} goes on; words lost, doubled`,
    measured: `${losses.lost}, ${losses.doubled} (${losses.recovered} went on in the middle, ${losses.failed} failed)`,
    baseline: "",
    ratio: "",
    target: "0, 0",
    isOk: losses.lost + losses.doubled + losses.failed === 0,
  });
}

/** What was told of it, and what was heard: whichever is worse. */
function count(losses: Losses, { audio, events, done }: SpokenUtterance): void {
  const { words, recoveries } = toldWords(events);
  losses.recovered += recoveries;
  if (done.outcome !== "done") {
    // It says how much was heard: nothing is lost that anybody takes for said.
    losses.failed += 1;
    return;
  }
  const expected = wordsOf(LONG_TEXT);
  const starts = words.map(({ start }) => start);
  const heard = countTones(audio, RATE);
  const missing = expected.length - new Set(starts).size;
  losses.lost += Math.max(missing, expected.length - heard, 0);
  losses.doubled += Math.max(starts.length - new Set(starts).size, heard - expected.length, 0);
}

// ---- shared ------------------------------------------------------------------------------------------------------

function startServices(bench: Bench, options: ScriptedServicesOptions): Promise<Services> {
  return bench.start<ScriptedServicesCommands>("scripted-services", options);
}

/** Of the first upstream. */
function portOf(urls: Readonly<Record<string, string>>): number {
  return Number(new URL(urls[FIRST] ?? "").port);
}

function voiceOf(name: string): string {
  const voice = SCRIPTED_SERVICES[name]?.voice ?? "";
  return name === FIRST ? voice : `${name}:${voice}`;
}

function configsOf(urls: Readonly<Record<string, string>>): ServiceConfig[] {
  const others = Object.entries(SCRIPTED_SERVICES).filter(([name]) => name !== FIRST);
  return others.map(([name, { key }]) => ({
    ...{ name, service: name, baseUrl: urls[name] ?? "", key },
    ...{ model: "", sampleRate: null, voices: [], maxOpen: null },
  }));
}
