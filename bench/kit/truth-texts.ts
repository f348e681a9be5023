/** Sentences in several languages, by seed, and the dice behind them. */

export interface Spoken {
  readonly text: string;
  /** ISO 639-1. */
  readonly language: string;
}

const WORDS: Readonly<Record<string, string>> = {
  en: "the quick brown fox jumps over lazy dogs while seven children sing about water and morning light under old trees beside a quiet river where nobody hears distant thunder until evening comes again with rain",
  de: "der schnelle braune Fuchs springt über faule Hunde während sieben Kinder am Morgen schöne Lieder singen und niemand hört den fernen Donner hinter alten Häusern bis es abends wieder leise regnet",
  fr: "le petit renard brun saute par dessus un chien paresseux pendant que sept enfants chantent chaque matin devant la vieille maison et personne n'entend encore cette pluie lointaine qui tombe sur nos jardins",
  es: "el rápido zorro marrón salta sobre perros perezosos mientras siete niños cantan cada mañana cerca del río donde nadie escucha todavía truenos lejanos hasta que vuelve la lluvia por las viejas calles",
  it: "la volpe marrone salta sopra il cane pigro mentre sette bambini cantano ogni mattina davanti alla vecchia casa dove nessuno sente ancora quel tuono lontano finché torna piano una pioggia leggera",
  pl: "szybki brązowy lis skacze przez leniwego psa a siedem dzieci śpiewa rano piosenki przed starym domem gdzie nikt jeszcze nie słyszy dalekiego grzmotu zanim wieczorem znowu spadnie cichy deszcz",
  ru: "быстрая лиса прыгает через ленивую собаку пока семь детей поют утром песни возле старого дома где никто ещё не слышит далёкого грома до самого вечера когда снова пойдёт тихий дождь",
  tr: "hızlı kahverengi tilki tembel köpeğin üstünden atlar ve yedi çocuk her sabah eski evin önünde şarkı söyler ama kimse henüz uzaktaki gök gürültüsünü duymaz ta ki akşam yine yağmur başlayana kadar",
};

/** Numbers from 0 up to 1 (Mulberry32): the same for the same seed. */
export function createDice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** One or more sentences of 3 to 12 words each, in one language. */
export function speak(dice: () => number, sentences: number): Spoken {
  const languages = Object.keys(WORDS);
  const language = pickOne(languages, dice);
  const words = (WORDS[language] ?? "").split(" ");
  const text = Array.from({ length: sentences }, () => sentence(words, dice)).join(" ");
  return { text, language };
}

function sentence(words: readonly string[], dice: () => number): string {
  const count = 3 + Math.floor(dice() * 10);
  const left = [...words];
  const said = Array.from({ length: count }, (_, i) => {
    const [word = ""] = left.splice(Math.floor(dice() * left.length), 1);
    return i > 1 && i < count - 2 && dice() < 0.15 ? `${word},` : word;
  }).join(" ");
  return said.slice(0, 1).toUpperCase() + said.slice(1) + pickOne([".", ".", ".", "!", "?"], dice);
}

function pickOne<T>(from: readonly T[], dice: () => number): T {
  const one = from[Math.floor(dice() * from.length)];
  if (one === undefined) throw new Error("Nothing to pick from: expected at least one");
  return one;
}
