/**
 * Sound effects from the key words of a prompt. It is synthesis and no generative model: each known word has a generator of
 * its own (words/vocabulary.ts), and words around it shape it.
 */
import { Filter, reverb, SAMPLE_RATE, type Source, samplesIn, saturate } from "./dsp.ts";
import { HitMixer } from "./family.ts";
import type { Layer, SoundPlan } from "./plan.ts";

/** Samples of a block that is given. */
const BLOCK_SAMPLES = 256;
/**
 * Samples made in one go. The densest prompts (eight layers of many hits each) take some 6 us a sample: a piece of them
 * then holds the thread for about 0.4 ms.
 */
const PIECE_SAMPLES = 64;
/** The highest sample that a sound has: -3 dBFS. */
const PEAK = 32_767 * 10 ** (-3 / 20);
const END_FADE_SECONDS = 0.005;
/** How long a step of a sequence is still heard in the next one. */
const RELEASE_SECONDS = 0.35;
const RISE_SECONDS = 0.02;
const LOOP_FADE_SECONDS = 0.25;
/** The first hit's attack is not in the fade of the beginning. */
const FIRST_HIT_SECONDS = 0.01;
const NO_SAMPLES = new Int16Array(0);

/**
 * The sound, mono at 44.1 kHz, in blocks that sum up to `plan.samples`. Empty blocks come first: the loudest sample is
 * looked for before the first one is given, since the sound is made twice rather than kept. Later ones come in between,
 * too: no more than PIECE_SAMPLES are made from one to the next, so whoever shares the thread may pause there.
 */
export function* renderSound(plan: SoundPlan): Generator<Int16Array<ArrayBuffer>> {
  const measured = yield* joinedSource(plan);
  let peak = 1e-9;
  for (let at = 0; at < plan.samples; at += 1) {
    if (at % PIECE_SAMPLES === 0) yield NO_SAMPLES;
    peak = Math.max(peak, Math.abs(measured()));
  }
  const source = yield* joinedSource(plan);
  const gain = (PEAK * plan.peak) / peak;
  for (let from = 0; from < plan.samples; from += BLOCK_SAMPLES) {
    const block = new Int16Array(Math.min(BLOCK_SAMPLES, plan.samples - from));
    for (let at = 0; at < block.length; at += 1) {
      if (at % PIECE_SAMPLES === 0) yield NO_SAMPLES;
      block[at] = Math.round(source() * gain);
    }
    yield block;
  }
}

/** The mix with its ends: faded, or the one joined to the other. */
function* joinedSource(plan: SoundPlan): Generator<typeof NO_SAMPLES, Source> {
  const mix = mixSource(plan);
  if (!plan.isLooped) return faded(mix, plan.samples);
  const head = new Float64Array(Math.min(samplesIn(LOOP_FADE_SECONDS), Math.floor(plan.samples / 4)));
  for (let at = 0; at < head.length; at += 1) {
    if (at % PIECE_SAMPLES === 0) yield NO_SAMPLES;
    head[at] = mix();
  }
  return looped(mix, head, plan.samples);
}

function faded(mix: Source, samples: number): Source {
  const fade = Math.min(samplesIn(END_FADE_SECONDS), samples / 2);
  let at = 0;
  return () => {
    const toEdge = Math.min(at, samples - 1 - at);
    at += 1;
    return toEdge < fade ? (mix() * Math.max(0, toEdge)) / fade : mix();
  };
}

/**
 * The mix without its first quarter of a second, which was taken from it as `head` and comes at the end instead, crossfaded
 * with what comes after the end: the last sample is followed by the first as it was in the mix.
 */
function looped(mix: Source, head: Float64Array, samples: number): Source {
  const fade = head.length;
  let at = 0;
  return () => {
    const inFade = at - (samples - fade);
    at += 1;
    const value = mix();
    if (inFade < 0) return value;
    const angle = ((inFade + 1) / (fade + 1)) * (Math.PI / 2);
    return value * Math.cos(angle) + (head[inFade] ?? 0) * Math.sin(angle);
  };
}

/** All layers, in their place, without what is below hearing. */
function mixSource(plan: SoundPlan): Source {
  const layers = plan.layers.map((layer) => layerSource(layer, plan));
  const echo = plan.echoSeconds === null ? null : reverb(plan.echoSeconds);
  const first = Filter.highPass(22);
  const second = Filter.highPass(22);
  return () => {
    let sum = 0;
    for (const layer of layers) sum += layer();
    if (echo !== null) sum += echo(sum) * 0.55;
    return second.run(first.run(sum));
  };
}

function layerSource(layer: Layer, plan: SoundPlan): Source {
  const dry = layer.hits === null ? textureSource(layer) : hitSource(layer);
  const top = layer.topHz === null ? null : [Filter.lowPass(layer.topHz), Filter.lowPass(layer.topHz)];
  const echo = layer.echoSeconds === null ? null : reverb(layer.echoSeconds);
  const isFirst = layer.startSample === 0;
  const isLast = layer.startSample + layer.samples >= plan.samples - SAMPLE_RATE / 100;
  const rise = samplesIn(RISE_SECONDS);
  const release = samplesIn(RELEASE_SECONDS);
  let at = -layer.startSample;
  return () => {
    const now = at;
    at += 1;
    if (now < 0) return 0;
    const left = isLast ? release : layer.samples + release - now;
    if (left <= 0) return 0;
    let value = dry();
    if (layer.isDriven) value = saturate(value * 2) * 0.7;
    if (top !== null) for (const filter of top) value = filter.run(value);
    if (echo !== null) value += echo(value) * 0.6;
    const level = Math.min(1, left / release, isFirst ? 1 : (now + 1) / rise);
    return value * layer.gain * level;
  };
}

function textureSource({ family, shape }: Layer): Source {
  // Forked, for a sound is made twice and has to be the same both times.
  return family.kind === "texture"
    ? family.create({ ...shape, random: shape.random.fork("texture") })
    : () => 0;
}

/** Brings the hits one after another, each a little different. */
function hitSource(layer: Layer): Source {
  const { family, shape, hits } = layer;
  if (family.kind === "texture" || hits === null) return () => 0;
  const mixer = new HitMixer();
  const every = hits.everySeconds * SAMPLE_RATE;
  // A hit that begins at the very end would be cut before it is heard.
  const lastStart = hits.goesOn
    ? Number.POSITIVE_INFINITY
    : layer.samples - Math.min(samplesIn(family.seconds * 0.5), samplesIn(0.2), layer.samples / 3);
  let index = 0;
  let due = samplesIn(FIRST_HIT_SECONDS);
  let at = 0;
  return () => {
    if (at >= due && (hits.count === null ? at <= lastStart : index < hits.count)) {
      const random = shape.random.fork(index);
      const pitch = shape.pitch * (1 + layer.pitchSpread * random.signed());
      mixer.add(family.create({ ...shape, pitch, random }, index));
      index += 1;
      const shift = hits.unevenness * 0.5 * random.signed();
      due = samplesIn(FIRST_HIT_SECONDS) + Math.round((index + shift) * every);
    }
    at += 1;
    return mixer.next();
  };
}
