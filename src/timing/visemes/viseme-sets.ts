/** The sets of mouth shapes that a listener can have, and what the shapes of Oculus are as weights of ARKit's blendshapes. */
import type { Viseme, VisemeSet } from "../../protocol/vocabulary.ts";
import { OCULUS_VISEMES, type OculusViseme, PHONES, type Phone } from "./phones.ts";

/** What a sound looks like in a set; null is silence. ARKit's shapes have the names of Oculus'. */
export function visemeOf(phone: Phone | null, set: VisemeSet): Viseme {
  if (set === "microsoft") return phone === null ? 0 : PHONES[phone].microsoft;
  return phone === null ? "sil" : PHONES[phone].oculus;
}

/**
 * Where there is not time for all of a word's shapes, those go first that are seen least: what the tongue does behind the
 * teeth. Lips that close are seen in any case.
 */
const SEEN: Readonly<Record<OculusViseme, number>> = {
  ...{ sil: 0, kk: 1, nn: 2, DD: 2, RR: 2, SS: 3, TH: 3, CH: 4 },
  ...{ ih: 4, E: 5, aa: 6, oh: 6, ou: 6, FF: 7, PP: 8 },
};

/** The higher, the more it is seen. */
export function visibilityOf(phone: Phone): number {
  return SEEN[PHONES[phone].oculus];
}

/** Names of ARKit's `ARFaceAnchor.BlendShapeLocation`, 0 to 1; those that are not named are 0. */
export const ARKIT_WEIGHTS: Readonly<Record<OculusViseme, Readonly<Record<string, number>>>> = {
  sil: {},
  PP: {
    mouthClose: 0.1,
    jawOpen: 0.05,
    ...both("mouthPress", 0.6),
    mouthRollLower: 0.3,
    mouthRollUpper: 0.3,
  },
  FF: { jawOpen: 0.1, mouthRollLower: 0.6, mouthShrugUpper: 0.2, ...both("mouthUpperUp", 0.3) },
  TH: { jawOpen: 0.2, tongueOut: 0.4, ...both("mouthLowerDown", 0.2) },
  DD: { jawOpen: 0.15, ...both("mouthLowerDown", 0.25), ...both("mouthUpperUp", 0.1) },
  kk: { jawOpen: 0.2, ...both("mouthStretch", 0.1), ...both("mouthLowerDown", 0.15) },
  CH: { jawOpen: 0.12, mouthFunnel: 0.55, mouthPucker: 0.2 },
  SS: {
    jawOpen: 0.05,
    ...both("mouthStretch", 0.35),
    ...both("mouthLowerDown", 0.3),
    ...both("mouthSmile", 0.1),
  },
  nn: { jawOpen: 0.12, ...both("mouthLowerDown", 0.2) },
  RR: { jawOpen: 0.15, mouthFunnel: 0.3, mouthPucker: 0.25 },
  aa: { jawOpen: 0.6, ...both("mouthLowerDown", 0.3), ...both("mouthUpperUp", 0.15) },
  E: { jawOpen: 0.35, ...both("mouthStretch", 0.25), ...both("mouthSmile", 0.2) },
  ih: { jawOpen: 0.2, ...both("mouthSmile", 0.35), ...both("mouthStretch", 0.2) },
  oh: { jawOpen: 0.4, mouthFunnel: 0.5, mouthPucker: 0.2 },
  ou: { jawOpen: 0.15, mouthFunnel: 0.3, mouthPucker: 0.7 },
};

/** The weights of shapes that `visemeOf` gave for `arkit`. */
export function arkitWeights(viseme: Viseme): Readonly<Record<string, number>> {
  const name = OCULUS_VISEMES.find((known) => known === viseme);
  return name === undefined ? {} : ARKIT_WEIGHTS[name];
}

function both(name: string, weight: number): Record<string, number> {
  return { [`${name}Left`]: weight, [`${name}Right`]: weight };
}
