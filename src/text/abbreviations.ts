/** What a full stop means after the word before it. Word lists of the larger languages in Latin and Cyrillic script. */

/**
 * - `end`: an ordinary word: the sentence ends.
 * - `never`: "Dr.", "e.g.": something follows that belongs to it.
 * - `number`: "No. 5", "p. 12": belongs to a number, ends the sentence before anything else.
 * - `initial`: "J. Smith": belongs to a name.
 * - `maybe`: "U.S.", "etc.": the sentence ends if the next word is one that likes to start sentences.
 */
type StopMeaning = "end" | "never" | "number" | "initial" | "maybe";

const NEVER = words(`
  mr mrs ms mx dr drs prof gen sen rep gov lt col capt cpt cmdr cdr sgt maj adm rev hon pres supt msgr messrs mssrs
  st ste mt ft fr vs e.g i.e eg ie cf viz resp incl excl
  z.b d.h u.a u.u s.o s.u i.d.r bzw evtl ggf hr dipl dipl.-ing inkl exkl sog vgl zzgl abzgl
  mme mlle mm mgr sra srta sres ud uds vd vds lic excmo dott dott.ssa sig sig.ra sig.na ing avv exmo dra dhr mevr
  ee dña dto dpto d.na ilmo т.е т.к т.н г-н г-жа проф акад им ул пр
  ดร นพ พญ ผศ รศ ด.ร प्रो`);

const NUMBER = words(`
  no nr nos nrs num núm p pp pg fig figs vol vols art arts sec ch chap eq approx ca circa ver par para abs bd kap ziff max min
  стр рис гл`);

const MAYBE = words(`
  etc inc ltd co corp plc llc gmbh jr sr bros dept univ assn ave blvd rd est al usw u.s.w ph.d m.sc b.sc m.d
  a.k.a uu jan feb apr jun jul aug sept sep oct nov dec tues thurs str tel ext ed eds trans misc т.д т.п др гг`);

const MEANINGS: ReadonlyMap<string, StopMeaning> = new Map<string, StopMeaning>([
  ...[...MAYBE].map((word) => [word, "maybe"] as const),
  ...[...NUMBER].map((word) => [word, "number"] as const),
  ...[...NEVER].map((word) => [word, "never"] as const),
]);

/** Words that begin sentences and seldom follow an abbreviation inside one. */
const STARTERS = words(`
  the a an i i'm i've i'd i'll he she it it's they we you you're this that that's these those there there's here
  but and so or if when while what where who why how which because although though since until after before then now
  yes no well also however moreover therefore meanwhile instead finally first next in on at as for from with by to
  my our your his her its their let let's please do does did is are was were can could will would should may might
  some many most all each every both one two three once again still just not nothing everyone everything another other
  der die das ein eine ich er sie es wir ihr und aber wenn dann dies diese dieser hier dort wie warum
  le la les un une il elle nous vous ils elles on ce cette ces et mais donc
  el los las una yo él ella nosotros ellos esto esta este pero entonces y
  o os as um uma eu ele ela nós eles isto este esta mas então lo gli io lui lei noi loro questo questa ma allora
  он она оно они мы вы я это но и а если когда потом затем также однако теперь тогда этот эта эти`);

/** Behind "3." they make it a day: "Am 3. Mai", "den 1. januar". */
const MONTHS = words(`
  januar jänner februar märz april mai juni juli august september oktober november dezember
  marts maj december januari februari mars augusti desember mei`);

/** What the stop means after `token`: everything between the white space before it and the stop. */
export function stopMeaning(token: string): StopMeaning {
  const isBare = isAsciiLetter(token.charCodeAt(0));
  const word = isBare ? token : token.replace(/^[^\p{L}\p{N}]+/u, "");
  const listed = MEANINGS.get(word.toLowerCase());
  if (listed !== undefined) return listed;
  // One letter may have marks on it: the letter behind the first shows that it is a word.
  if (isAsciiLetter(word.charCodeAt(1)) && !word.includes(".")) return "end";
  if (/^\p{L}\p{M}*$/u.test(word)) return meaningOfLetter(word);
  return isDotted(word) ? "maybe" : "end";
}

/** Whether the stop belongs to the word as it is shown: "Dr.", "U.S.A.", "etc.", "J." */
export function keepsStop(word: string): boolean {
  const meaning = stopMeaning(word);
  return meaning !== "end" && meaning !== "number" && word !== "I";
}

/** Whether `word` (as written) is one that likes to start sentences. */
export function startsSentences(word: string): boolean {
  return STARTERS.has(word.toLowerCase().replace("’", "'"));
}

function isAsciiLetter(unit: number): boolean {
  return (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a);
}

/** Small letters are seldom initials: "plan b.", and "я." is a word. So are most characters of East Asia. */
function meaningOfLetter(letter: string): StopMeaning {
  if (/[\p{sc=Hang}\p{sc=Han}\p{sc=Hira}\p{sc=Kana}]/u.test(letter)) return "end";
  return letter === "I" || /^\p{Ll}/u.test(letter) ? "maybe" : "initial";
}

/** Whether a month: "3." before it is a day and ends nothing. */
export function isMonth(word: string): boolean {
  return MONTHS.has(word.toLowerCase());
}

/** "U.S", "a.m", "p.p.s", "Ph.D": single letters with stops between, the final stop cut off. */
function isDotted(word: string): boolean {
  return /^(?:\p{L}\p{M}*\.)+\p{L}\p{M}*$/u.test(word);
}

function words(list: string): ReadonlySet<string> {
  return new Set(list.trim().split(/\s+/));
}
