/**
 * Sounds under speech: typing, music, the noise of a room. They are mixed into a session's speech once, before all renditions,
 * and go on alone where nothing is spoken. Speech is kept without them: its receipts, and where it goes on, are as they were.
 */
import { bytesOf } from "../../audio/codecs/pcm.ts";
import { GatewayError } from "../../errors.ts";
import { msOfTicks, TICKS_PER_MS, ticksPerSample } from "../../timing/ticks.ts";
import type { EventWriter } from "../events/event-writer.ts";
import type { Slice } from "../source.ts";
import { madeSamples } from "./sound-samples.ts";
import { type UnderOptions, UnderSound } from "./under-sound.ts";

/** Most sounds of one session at once. */
const MAX_UNDER = 4;
/** They become softer in this when speech begins, and louder again behind it. */
const DUCK_MS = 80;
const RISE_MS = 400;
/** Interrupted, they fall to nothing in this. */
const CUT_TICKS = 20 * TICKS_PER_MS;

/** What stands at a place on the timeline. */
interface Place {
  readonly atTicks: number;
  readonly rate: number;
  readonly isSpeech: boolean;
}

export class UnderSounds {
  readonly #writer: EventWriter;
  readonly #sounds = new Map<string, UnderSound>();
  /** The gateway's own noise: it has no events, and ends with `setNoise` alone. */
  #noise: UnderSound | null = null;
  /** How far they are on the way to their ducked gain, 0 to 1. */
  #ducked = 0;

  constructor(writer: EventWriter) {
    this.#writer = writer;
  }

  /** Nothing is mixed into speech. */
  get isEmpty(): boolean {
    return this.#sounds.size === 0 && this.#noise === null;
  }

  /** Some were sent by clients. */
  get hasSounds(): boolean {
    return this.#sounds.size > 0;
  }

  has(id: string): boolean {
    return this.#sounds.has(id);
  }

  /** Throws sounds_full. */
  mustHaveRoom(): void {
    if (this.#sounds.size < MAX_UNDER) return;
    throw new GatewayError(
      "sounds_full",
      `Nothing more can be played under speech: ${MAX_UNDER} sounds are, which is the limit`,
      { retryAfterMs: 1000 },
    );
  }

  /** It begins where audio is made next. Throws sounds_full. */
  add(id: string, options: UnderOptions): void {
    this.mustHaveRoom();
    this.#sounds.set(id, new UnderSound(id, options));
  }

  /** Noise that is as loud under speech as alone; null: none any more. */
  setNoise(dbfs: number | null): void {
    if (dbfs === null) this.#noise?.stop("stopped", CUT_TICKS);
    else {
      this.#noise = new UnderSound("", {
        samples: madeSamples({ kind: "noise", dbfs }, Number.POSITIVE_INFINITY),
        gain: 1,
        duckedGain: 1,
        fadeInTicks: CUT_TICKS,
        fadeOutTicks: CUT_TICKS,
        repeats: "always",
        onOver: () => undefined,
      });
    }
  }

  /** One, or all, fall to nothing in so many ticks; default: each in its own time. */
  stop(id: string | undefined, fadeTicks?: number): void {
    for (const sound of this.#named(id)) sound.stop("stopped", fadeTicks);
  }

  /** One, or all, end; tells of each how much was played at `playheadTicks`. */
  interrupt(
    id: string | undefined,
    playheadTicks: number,
  ): { readonly id: string; readonly heardTicks: number }[] {
    return this.#named(id).map((sound) => {
      sound.stop("interrupted", CUT_TICKS);
      return { id: sound.id, heardTicks: Math.max(0, playheadTicks - (sound.startTicks ?? playheadTicks)) };
    });
  }

  /** Nothing is queued any more. */
  endWithSpeech(): void {
    for (const sound of this.#sounds.values()) if (sound.options.repeats === "speech") sound.stop("done");
  }

  /** No audio is made now that those could fade in that are to end: they are over. */
  endStopped(atTicks: number): void {
    if (this.#noise?.isStopping) this.#noise = null;
    for (const sound of this.#sounds.values()) if (sound.isStopping) this.#end(sound, atTicks);
  }

  /** Speech with what is under it. */
  mix(slice: Slice, atTicks: number): Slice {
    const values = Float64Array.from(slice.pcm(), (sample) => sample / 32_768);
    return { ...this.#add(values, { atTicks, rate: slice.pcmRate, isSpeech: true }), ticks: slice.ticks };
  }

  /** What is under nothing. */
  alone(ticks: number, { atTicks, rate }: Pick<Place, "atTicks" | "rate">): Slice {
    const count = Math.round(ticks / ticksPerSample(rate));
    return this.#add(new Float64Array(count), { atTicks, rate, isSpeech: false });
  }

  /** Audio behind this place was not heard. */
  cutTo(ticks: number): void {
    this.#noise?.rewindTo(ticks);
    for (const sound of this.#sounds.values()) sound.rewindTo(ticks);
  }

  /** Idempotent. */
  close(): void {
    this.#noise = null;
    for (const { options } of this.#sounds.values()) options.onOver();
    this.#sounds.clear();
  }

  #named(id: string | undefined): UnderSound[] {
    return [...this.#sounds.values()].filter((sound) => id === undefined || sound.id === id);
  }

  #add(values: Float64Array, { atTicks, rate, isSpeech }: Place): Slice {
    const sampleTicks = ticksPerSample(rate);
    const step = sampleTicks / ((isSpeech ? DUCK_MS : -RISE_MS) * TICKS_PER_MS);
    const ducked = Float64Array.from(values, () => {
      this.#ducked = Math.max(0, Math.min(1, this.#ducked + step));
      return this.#ducked;
    });
    if (this.#noise?.startTicks === null) this.#noise.begin(atTicks);
    if (this.#noise?.addTo(values, { atTicks, rate, ducked })) this.#noise = null;
    for (const sound of this.#sounds.values()) {
      if (sound.startTicks === null) this.#begin(sound, atTicks);
      if (sound.addTo(values, { atTicks, rate, ducked })) this.#end(sound, sound.endTicks ?? atTicks);
    }
    const pcm = Int16Array.from(values, (value) =>
      Math.max(-32_768, Math.min(32_767, Math.round(value * 32_768))),
    );
    return {
      format: `pcm_${rate}`,
      ticks: pcm.length * sampleTicks,
      pcmRate: rate,
      raw: () => [bytesOf(pcm)],
      pcm: () => pcm,
    };
  }

  #begin(sound: UnderSound, atTicks: number): void {
    sound.begin(atTicks);
    this.#writer.write({ positionTicks: atTicks, kind: null, utterance: null }, (base) => ({
      type: "sound.started",
      ...base,
      utterance_id: sound.id,
      start_ms: msOfTicks(atTicks),
    }));
  }

  #end(sound: UnderSound, atTicks: number): void {
    this.#sounds.delete(sound.id);
    sound.options.onOver();
    const { outcome, startTicks } = sound;
    this.#writer.write({ positionTicks: atTicks, kind: null, utterance: null }, (base) => ({
      type: "sound.ended",
      ...base,
      utterance_id: sound.id,
      outcome,
      start_ms: msOfTicks(startTicks ?? atTicks),
      end_ms: msOfTicks(atTicks),
    }));
  }
}
