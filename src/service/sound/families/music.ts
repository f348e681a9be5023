/** Instruments. Each hit is a note of a broken chord, in tune: the first one is the instrument's own. */

import {
  decay,
  Filter,
  type Mode,
  pinkNoise,
  ringing,
  type Source,
  saw,
  sine,
  square,
  swell,
  type Tone,
  throat,
} from "../dsp.ts";
import { type Hit, type HitFamily, hit, type Shape, shapedHit } from "../family.ts";
import { sumOf } from "./blows.ts";
import { cymbalHit, kickHit, snareHit } from "./drums.ts";

/** Up and down a chord, in semitones over the first note. */
const CHORD_NOTES = [0, 4, 7, 12, 7, 4] as const;

interface Note {
  readonly hz: number;
  readonly shape: Shape;
}

interface Instrument {
  /** Pitch of the first note. */
  readonly hz: number;
  /** One note, until nothing is heard. */
  readonly seconds: number;
  readonly everySeconds: number;
  readonly play: (note: Note) => Hit;
}

function instrument({ hz, seconds, everySeconds, play }: Instrument): HitFamily {
  return {
    kind: "hits",
    seconds,
    everySeconds,
    usualCount: CHORD_NOTES.length,
    unevenness: 0,
    isTuned: true,
    create: (shape, index) => {
      const semitones = CHORD_NOTES[index % CHORD_NOTES.length] ?? 0;
      return play({ hz: hz * shape.pitch * 2 ** (semitones / 12), shape });
    },
  };
}

/** Partials of a string, the higher the shorter. `stiffness` draws them apart upwards. */
function stringModes(
  hz: number,
  options: {
    readonly seconds: number;
    readonly stiffness: number;
    readonly gainOf: (order: number) => number;
  },
): readonly Mode[] {
  return Array.from({ length: 16 }, (_, index) => {
    const order = index + 1;
    return {
      hz: hz * order * Math.sqrt(1 + options.stiffness * order * order),
      gain: options.gainOf(order),
      seconds: options.seconds / (1 + 0.28 * index),
    };
  });
}

/** A string plucked at a part of its length: partials that have a node there are missing. */
function pluck(options: Omit<Instrument, "play"> & { readonly at: number; readonly ringSeconds: number }) {
  return instrument({
    ...options,
    play: ({ hz, shape: { size } }) => {
      const gainOf = (order: number) => (0.9 * Math.sin(Math.PI * order * options.at)) / order ** 1.3;
      return hit(
        options.seconds * size,
        ringing(stringModes(hz, { seconds: options.ringSeconds * size, stiffness: 0.00005, gainOf })),
      );
    },
  });
}

/** Felt on steel: dull beside a pluck, with partials that are a little sharp, and the knock of the hammer. */
export const piano = instrument({
  hz: 261.63,
  seconds: 2.4,
  everySeconds: 0.4,
  play: ({ hz, shape: { size, random } }) => {
    const gainOf = (order: number) => 0.6 / order ** 1.6;
    const strings = ringing(stringModes(hz, { seconds: 3 * size, stiffness: 0.0004, gainOf }));
    const knock = Filter.bandPass(1200, 0.7);
    const noise = random.fork("hammer");
    const level = decay(0.02);
    return hit(2.4 * size, () => strings() + knock.run(noise.signed()) * level() * 0.25);
  },
});

export const guitar = pluck({ hz: 196, seconds: 1.8, everySeconds: 0.32, at: 0.18, ringSeconds: 2 });
export const harp = pluck({ hz: 392, seconds: 2.2, everySeconds: 0.22, at: 0.45, ringSeconds: 2.6 });

/** Bars of wood: over the first partial comes the one two octaves up. */
export const xylophone = instrument({
  hz: 1046.5,
  seconds: 0.5,
  everySeconds: 0.2,
  play: ({ hz, shape: { size } }) =>
    hit(
      0.5 * size,
      ringing([
        { hz, gain: 0.7, seconds: 0.5 * size },
        { hz: hz * 3.93, gain: 0.25, seconds: 0.12 * size },
        { hz: hz * 9.2, gain: 0.08, seconds: 0.05 * size },
      ]),
    ),
});

interface Held {
  readonly seconds: number;
  /** Until a note is as loud as it gets. */
  readonly riseSeconds: number;
  /** Part of the pitch that the vibrato moves it by. */
  readonly vibrato: number;
  readonly makeTone: () => Tone;
}

/** A note that is held: it rises, trembles and is let go. `colour` makes the tone what the instrument is. */
function held(
  { hz, shape: { size } }: Note,
  options: Held,
  colour: (value: number, level: number) => number,
): Hit {
  const seconds = options.seconds * size;
  const tone = options.makeTone();
  const tremble = sine();
  return shapedHit(seconds, (part) => {
    const at = part * seconds;
    const level = Math.min(1, at / options.riseSeconds, (seconds - at) / 0.08);
    // A player lets the note settle before it trembles.
    const depth = options.vibrato * Math.min(1, at / 0.4);
    return colour(tone(hz * (1 + depth * tremble(5.5))), level) * level;
  });
}

/** A bow on a string, in a box of wood. */
function bowed(hz: number, bodyHz: number): HitFamily {
  return instrument({
    hz,
    seconds: 0.75,
    everySeconds: 0.68,
    play: (note) => {
      const body = throat([
        [bodyHz, 1.5, 0.9],
        [bodyHz * 2.1, 1.5, 0.7],
        [bodyHz * 5.5, 1.2, 0.5],
      ]);
      const hair = pinkNoise(note.shape.random.fork("hair"));
      const rub = Filter.bandPass(bodyHz * 6, 0.8);
      return held(
        note,
        { seconds: 0.75, riseSeconds: 0.09, vibrato: 0.006, makeTone: saw },
        (value) => body(value * 0.7) + rub.run(hair()) * 0.05,
      );
    },
  });
}

export const violin = bowed(440, 480);
export const cello = bowed(130.81, 200);

/** Nearly a sine, with the breath around it. */
export const flute = instrument({
  hz: 523.25,
  seconds: 0.65,
  everySeconds: 0.58,
  play: (note) => {
    const breath = pinkNoise(note.shape.random.fork("breath"));
    const air = Filter.bandPass(note.hz * 2, 1);
    const octave = sine();
    return held(
      note,
      { seconds: 0.65, riseSeconds: 0.06, vibrato: 0.004, makeTone: sine },
      (value) => value * 0.7 + octave(note.hz * 2) * 0.12 + air.run(breath()) * 0.12,
    );
  },
});

/** A closed pipe: odd partials. */
export const clarinet = instrument({
  hz: 293.66,
  seconds: 0.65,
  everySeconds: 0.58,
  play: (note) => {
    const bore = Filter.lowPass(note.hz * 5);
    return held(
      note,
      { seconds: 0.65, riseSeconds: 0.04, vibrato: 0, makeTone: square },
      (value) => bore.run(value) * 0.6,
    );
  },
});

/** Brass: the louder, the brighter, so a note opens as it begins. */
export const trumpet = instrument({
  hz: 349.23,
  seconds: 0.5,
  everySeconds: 0.42,
  play: (note) => {
    const bell = Filter.lowPass(500, 1);
    let until = 0;
    return held(note, { seconds: 0.5, riseSeconds: 0.05, vibrato: 0.002, makeTone: saw }, (value, level) => {
      if (until === 0) {
        bell.tuneLowPass(400 + 3600 * level * level, 1);
        until = 16;
      }
      until -= 1;
      return bell.run(value) * 0.6;
    });
  },
});

/** Drawbars: how loud each pipe is, by its ratio to the note. */
const PIPES = [
  [0.5, 0.5],
  [1, 0.8],
  [1.5, 0.2],
  [2, 0.5],
  [3, 0.3],
  [4, 0.3],
  [6, 0.12],
  [8, 0.12],
] as const;

/** Three keys at once, at one level as long as they are down. */
export const organ: HitFamily = {
  kind: "hits",
  seconds: 2,
  everySeconds: 1.9,
  usualCount: 2,
  unevenness: 0,
  isTuned: true,
  create({ pitch, size }, index) {
    const root = 196 * pitch * (index % 2 === 0 ? 1 : 2 ** (5 / 12));
    const pipes = [0, 4, 7].flatMap((semitones) =>
      PIPES.map(([ratio, gain]) => ({
        tone: sine(),
        hz: root * 2 ** (semitones / 12) * ratio,
        gain: gain / 3,
      })),
    );
    const seconds = 2 * size;
    return shapedHit(seconds, (part) => {
      const at = part * seconds;
      let sum = 0;
      for (const { tone, hz, gain } of pipes) sum += tone(hz) * gain;
      return sum * 0.5 * Math.min(1, at / 0.03, (seconds - at) / 0.06);
    });
  },
};

/** A beat in eighths: kick, hi-hat, snare, hi-hat. */
export const drumKit: HitFamily = {
  kind: "hits",
  seconds: 0.5,
  everySeconds: 0.25,
  usualCount: 16,
  unevenness: 0,
  isTuned: true,
  create(shape, index) {
    const hat = cymbalHit({ ...shape, size: shape.size * 0.08 });
    const drums: readonly Source[] =
      index % 4 === 0 ? [kickHit(shape)] : index % 4 === 2 ? [snareHit(shape)] : [];
    const level = swell(0.001, 0.5);
    return hit(0.4 * shape.size, sumOf([...drums, () => hat() * level() * 0.5]));
  },
};
