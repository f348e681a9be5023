/**
 * Pronunciations in IPA or CMU ARPABET as mnemonics of eSpeak NG's English phonemes, which every English accent of the
 * engine has. A sound that English has no phoneme for has no mnemonic, and is named.
 */

/** The alphabets that the interface names. */
export const ALPHABETS = ["ipa", "cmu-arpabet"] as const;
export type Alphabet = (typeof ALPHABETS)[number];

/** `unknown`: the first symbol that stands for no sound of the engine's. */
type Pronunciation = { readonly mnemonics: string } | { readonly unknown: string };

/** Between two mnemonics: "t|S" is two sounds, "tS" is one. */
const SEPARATOR = "|";
const PRIMARY = "'";
const SECONDARY = ",";

export function readPronunciation(phoneme: string, alphabet: Alphabet): Pronunciation {
  const words: string[] = [];
  for (const group of alphabet === "ipa" ? phoneme.trim().split(/\s+/u) : [phoneme]) {
    const read = alphabet === "ipa" ? readIpa(group) : readArpabet(group);
    if ("unknown" in read) return read;
    words.push(read.mnemonics);
  }
  const mnemonics = words.filter((word) => word !== "").join(" ");
  return mnemonics === "" ? { unknown: phoneme } : { mnemonics };
}

/** Pairs of symbol and mnemonic, as "symbol=mnemonic". */
function pairs(...rows: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    rows.flatMap((row) =>
      row.split(" ").map((pair): [string, string] => {
        const at = pair.indexOf("=");
        return [pair.slice(0, at), pair.slice(at + 1)];
      }),
    ),
  );
}

/** Where one symbol begins another, the longer one is meant. */
const IPA = pairs(
  "eɪ=eI aɪ=aI ɔɪ=OI aʊ=aU oʊ=oU əʊ=oU ɪə=i@",
  "iː=i: uː=u: ɑː=A: ɔː=O: ɜː=3: ɝː=3:",
  "i=i ɪ=I ᵻ=I2 e=e ɛ=E æ=a a=a ɑ=A: ɒ=0 ɔ=O o=o ʌ=V ɐ=V ʊ=U u=u ə=@ ɚ=3 ɝ=3: ɜ=3:",
  "tʃ=tS dʒ=dZ ʧ=tS ʤ=dZ p=p b=b t=t d=d k=k g=g ɡ=g ʔ=? c=c ɟ=J q=q",
  "f=f v=v θ=T ð=D s=s z=z ʃ=S ʒ=Z h=h x=x ç=C ɣ=Q β=B χ=X ɬ=l#",
  "m=m n=n ŋ=N ɲ=n^ l=l ɫ=L ʎ=l^ r=r ɹ=r ɻ=r ɾ=t# w=w j=j",
  "n\u0329=n- m\u0329=m- l\u0329=l-",
);
/** Code points. */
const IPA_LENGTHS = [2, 1] as const;
/** Say nothing of their own: brackets around it, syllable breaks and the tie of an affricate. */
const IPA_SILENT = /[/[\].|]|\u203f|\u035c|\u0361/u;
/** With or without stress. */
const VOWEL = /^[',]?[aAeEiIoOuUV03@]/;

function readIpa(group: string): Pronunciation {
  // A mark may stand in a code point of its own.
  const text = Array.from(group.normalize("NFC")).filter((char) => !IPA_SILENT.test(char));
  const mnemonics: string[] = [];
  let stress = "";
  for (let at = 0; at < text.length; ) {
    const char = text[at] ?? "";
    if (char === "ˈ" || char === "'" || char === "ˌ") {
      stress = char === "ˌ" ? SECONDARY : PRIMARY;
      at += 1;
      continue;
    }
    if ((char === "ː" || char === ":") && VOWEL.test(mnemonics.at(-1) ?? "")) {
      mnemonics.push(":");
      at += 1;
      continue;
    }
    const length = IPA_LENGTHS.find((count) => IPA.has(text.slice(at, at + count).join("")));
    if (length === undefined) return { unknown: char };
    mnemonics.push(IPA.get(text.slice(at, at + length).join("")) ?? "");
    if (stress !== "" && VOWEL.test(mnemonics.at(-1) ?? "")) stress = stressed(mnemonics, stress);
    at += length;
  }
  return { mnemonics: mnemonics.join(SEPARATOR) };
}

/** The engine wants the stress at the syllable's vowel, IPA has it in front of the syllable. */
function stressed(mnemonics: string[], stress: string): "" {
  mnemonics.push(`${stress}${mnemonics.pop() ?? ""}`);
  return "";
}

const ARPABET_VOWELS = pairs(
  "AA=A: AE=a AH=V AO=O: AW=aU AX=@ AXR=3 AY=aI EH=E ER=3: EY=eI IH=I IX=I2 IY=i: OW=oU OY=OI UH=U UW=u: UX=u:",
);
/** What a vowel becomes without stress, where that is another sound. */
const ARPABET_REDUCED = pairs("AH=@ ER=3 IY=i");
const ARPABET_CONSONANTS = pairs(
  "B=b CH=tS D=d DH=D DX=t# EL=l- EM=m- EN=n- F=f G=g HH=h H=h JH=dZ K=k L=l M=m N=n NG=N P=p Q=?",
  "R=r S=s SH=S T=t TH=T V=v W=w Y=j Z=z ZH=Z",
);
const ARPABET_STRESSES: Readonly<Record<string, string>> = { "1": PRIMARY, "2": SECONDARY };

function readArpabet(group: string): Pronunciation {
  const mnemonics: string[] = [];
  for (const symbol of group.toUpperCase().split(/[\s-]+/u)) {
    if (symbol === "") continue;
    const [, name = "", digit = ""] = /^([A-Z]+)([012]?)$/.exec(symbol) ?? [];
    const vowel = (digit === "0" ? ARPABET_REDUCED.get(name) : undefined) ?? ARPABET_VOWELS.get(name);
    const consonant = ARPABET_CONSONANTS.get(name);
    if (vowel !== undefined) mnemonics.push(`${ARPABET_STRESSES[digit] ?? ""}${vowel}`);
    else if (consonant !== undefined && digit === "") mnemonics.push(consonant);
    else return { unknown: symbol.slice(0, 16) };
  }
  return { mnemonics: mnemonics.join(SEPARATOR) };
}
