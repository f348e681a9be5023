// Mouth shapes of the gateway, drawn. Every shape is three numbers from 0 to 1: how far the jaw is open, how wide the
// mouth is, and how round the lips are.

export const SHAPES = {
  sil: { open: 0, wide: 0.5, round: 0 },
  PP: { open: 0, wide: 0.45, round: 0.1 },
  FF: { open: 0.12, wide: 0.5, round: 0 },
  TH: { open: 0.25, wide: 0.5, round: 0 },
  DD: { open: 0.2, wide: 0.55, round: 0 },
  kk: { open: 0.25, wide: 0.5, round: 0 },
  CH: { open: 0.2, wide: 0.3, round: 0.6 },
  SS: { open: 0.1, wide: 0.65, round: 0 },
  nn: { open: 0.18, wide: 0.5, round: 0 },
  RR: { open: 0.2, wide: 0.35, round: 0.4 },
  aa: { open: 0.9, wide: 0.55, round: 0.1 },
  E: { open: 0.5, wide: 0.7, round: 0 },
  ih: { open: 0.3, wide: 0.75, round: 0 },
  oh: { open: 0.6, wide: 0.35, round: 0.7 },
  ou: { open: 0.3, wide: 0.15, round: 1 },
};

/** Lips move before the sound: a shape is reached when it begins to be heard, and left for the next from there on. */
export const LEAD_MS = 60;

/** Shapes on the timeline, as they come with `viseme` events. */
export class MouthTrack {
  #shapes = [];

  add({ visemes, vtimes_ms, vdurations_ms }) {
    visemes.forEach((viseme, index) => {
      this.#shapes.push({
        viseme,
        startMs: vtimes_ms[index],
        endMs: vtimes_ms[index] + vdurations_ms[index],
      });
    });
  }

  /** What begins at or behind this place is void. */
  cutAt(ms) {
    this.#shapes = this.#shapes.filter(({ startMs }) => startMs < ms);
  }

  /** The shape for a place of the timeline; where there is none the mouth is closed. */
  at(ms) {
    this.#shapes = this.#shapes.filter(({ endMs }) => endMs > ms - 1000);
    return this.#shapes.find(({ startMs, endMs }) => startMs <= ms && ms < endMs)?.viseme ?? "sil";
  }
}

export class Face {
  #mouth;
  #teeth;
  #now = { ...SHAPES.sil };

  constructor(svg) {
    this.#mouth = svg.querySelector("#mouth");
    this.#teeth = svg.querySelector("#teeth");
    this.draw("sil", 1000);
  }

  /** Moves towards a shape; `elapsedMs` since the last call. */
  draw(viseme, elapsedMs) {
    const goal = SHAPES[viseme] ?? SHAPES.sil;
    const part = Math.min(1, elapsedMs / LEAD_MS);
    for (const key of Object.keys(goal)) this.#now[key] += (goal[key] - this.#now[key]) * part;
    const { open, wide, round } = this.#now;
    const half = 14 + 26 * wide;
    const upper = 135 - 6 * open - 5 * round;
    const lower = 135 + 34 * open + 5 * round;
    const path = `M ${100 - half} 135 Q 100 ${upper} ${100 + half} 135 Q 100 ${lower} ${100 - half} 135 Z`;
    this.#mouth.setAttribute("d", path);
    this.#mouth.dataset.viseme = viseme;
    this.#teeth.setAttribute("y", String(133 - 3 * open));
    this.#teeth.setAttribute("opacity", open > 0.15 && round < 0.4 ? "1" : "0");
  }
}
