/** T2: interrupts real speech at random moments, and compares the receipt with what a simulated player had played. */
import type { Heard } from "../../src/protocol/events.ts";
import { wait } from "./monotonic.ts";
import { TruthClient } from "./truth-client.ts";
import { placeAudio } from "./truth-placement.ts";
import type { TruthProxy } from "./truth-proxy.ts";
import { createDice, speak } from "./truth-texts.ts";

const RATE = 24_000;
const SAMPLES_PER_MS = RATE / 1000;
const BYTES_PER_SAMPLE = 2;
const ACK_INTERVAL_MS = 100;
const SENTENCES = 4;
const MIN_SPEECH_MS = 300;
const MAX_SPEECH_MS = 4500;
/** What the player waits after the first frame before it plays: its own buffer and the sound card's. */
const MIN_DELAY_MS = 40;
const MAX_DELAY_MS = 250;

export interface PlayoutPlan {
  readonly proxy: TruthProxy;
  /** ws://host:port */
  readonly gatewayUrl: string;
  readonly interruptions: number;
  /** How many sessions at once. */
  readonly sessions: number;
  readonly hasAcks: boolean;
  readonly firstSeed: number;
}

export interface Interruption {
  /** Words told as heard minus words that were begun to be played. */
  readonly wordError: number;
  /** The same in time. */
  readonly errorMs: number;
  readonly boundMs: number;
  readonly source: Heard["source"];
  readonly delayMs: number;
}

/** Only those that came while the utterance was speaking. */
export async function measurePlayout(plan: PlayoutPlan): Promise<Interruption[]> {
  const results: Interruption[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < plan.interruptions) {
      const seed = plan.firstSeed + next++;
      const result = await interruptOnce(plan, seed);
      if (result !== null) results.push(result);
    }
  };
  await Promise.all(Array.from({ length: plan.sessions }, work));
  return results;
}

async function interruptOnce(plan: PlayoutPlan, seed: number): Promise<Interruption | null> {
  const dice = createDice(seed);
  const spoken = speak(dice, SENTENCES);
  const delayMs = MIN_DELAY_MS + dice() * (MAX_DELAY_MS - MIN_DELAY_MS);
  const url = `${plan.gatewayUrl}/live/t2-${seed}?format=pcm_24000&events=words`;
  await using client = await TruthClient.connect(url);
  const startMs = (await client.next("hello")).audio?.start_ms ?? 0;
  const player = new Player(delayMs);
  client.onFrame = (frame) => player.take(frame);
  let playedSamples = 0;
  client.onEvent = (event) => {
    if (event.type === "interrupted") playedSamples = player.stop();
  };
  client.send({ type: "speak", text: spoken.text, language_code: spoken.language, seed, utterance_id: "u" });
  await client.next("utterance.started");
  const acks = setInterval(() => {
    if (plan.hasAcks) client.send({ type: "played", at_ms: startMs + player.playedSamples / SAMPLES_PER_MS });
  }, ACK_INTERVAL_MS);
  await wait(MIN_SPEECH_MS + dice() * (MAX_SPEECH_MS - MIN_SPEECH_MS));
  client.send({ type: "interrupt" });
  const done = await client.next("utterance.done");
  clearInterval(acks);
  const [receipt] = client.eventsOf("interrupted");
  const responses = plan.proxy.take(seed);
  if (done.outcome !== "interrupted" || receipt === undefined) return null;
  const words = writtenWords(spoken.text, responses, client.audio);
  const told = words.filter(({ offset }) => offset < receipt.heard.end).length;
  const played = words.filter(({ endSample }) => endSample <= playedSamples).length;
  return {
    wordError: told - played,
    errorMs: receipt.heard.ms - playedSamples / SAMPLES_PER_MS,
    boundMs: receipt.heard.bound_ms,
    source: receipt.heard.source,
    delayMs,
  };
}

/** Plays frames in real time, beginning `delayMs` after the first one; where it runs dry it goes on with the next frame. */
class Player {
  readonly #delayMs: number;
  #receivedSamples = 0;
  #playedSamples = 0;
  /** Up to when it has played, ms; null = nothing came yet. */
  #atMs: number | null = null;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  take(frame: Buffer): void {
    this.#atMs ??= performance.now() + this.#delayMs;
    this.#play();
    this.#receivedSamples += frame.length / BYTES_PER_SAMPLE;
  }

  get playedSamples(): number {
    this.#play();
    return this.#playedSamples;
  }

  /** Throws away what is not played, and says how much was. */
  stop(): number {
    this.#play();
    this.#receivedSamples = this.#playedSamples;
    return this.#playedSamples;
  }

  #play(): void {
    const nowMs = performance.now();
    if (this.#atMs === null || nowMs <= this.#atMs) return;
    const dueSamples = this.#playedSamples + (nowMs - this.#atMs) * SAMPLES_PER_MS;
    this.#playedSamples = Math.min(this.#receivedSamples, dueSamples);
    this.#atMs = nowMs;
  }
}

/** The last letter or digit of a text. */
const LAST_LETTER = /[\p{L}\p{N}](?=[^\p{L}\p{N}]*$)/u;

/** Where in the text each word begins, and at which sample of what was heard it is over: written words, by the engine. */
function writtenWords(
  text: string,
  responses: ReturnType<TruthProxy["take"]>,
  audio: Buffer,
): { offset: number; endSample: number }[] {
  const written: { offset: number; endSample: number }[] = [];
  let [textFrom, searchFrom] = [0, 0];
  for (const response of responses) {
    const textStart = text.indexOf(response.text, textFrom);
    const placement = placeAudio(audio, response.audio, searchFrom);
    // Audio that never came to the listener was asked for ahead.
    if (textStart < 0 || placement === null) break;
    textFrom = textStart + response.text.length;
    searchFrom = placement.origin + placement.to;
    const offsets = [...new Set(response.words.map((word) => word.offset))].sort((a, b) => a - b);
    for (const [i, offset] of offsets.entries()) {
      const last = offset + (LAST_LETTER.exec(response.text.slice(offset, offsets[i + 1]))?.index ?? 0);
      const endMs = response.characters.find((character) => character.offset === last)?.endMs;
      const endSample = placement.origin + (endMs ?? Number.POSITIVE_INFINITY) * SAMPLES_PER_MS;
      written.push({ offset: textStart + offset, endSample });
    }
  }
  return written;
}
