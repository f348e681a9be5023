/** How a text says that a word is spoken: SSML's `<phoneme alphabet="ipa" ph="...">` (SSML 1.1, section 3.1.10). */
import { type Phone, phonesOfArpabet, phonesOfIpa } from "./phones.ts";

/** Longest tag that is looked for. */
const MAX_TAG_CHARS = 512;

/**
 * The sounds of a word inside a `<phoneme>`; null outside of one, and where the transcription is in another alphabet or can't
 * be shared out among several words. `word`: UTF-16 offsets in `text`.
 */
export function taggedPhones(
  text: string,
  word: { readonly start: number; readonly end: number },
): Phone[] | null {
  const from = Math.max(0, word.start - MAX_TAG_CHARS);
  const before = text.slice(from, word.start);
  const at = before.lastIndexOf("<phoneme");
  if (at < 0 || before.includes("</phoneme", at)) return null;
  const tagEnd = before.indexOf(">", at);
  if (tagEnd < 0) return null;
  const tag = before.slice(at, tagEnd);
  const alphabet = attributeOf(tag, "alphabet") ?? "ipa";
  const transcription = (attributeOf(tag, "ph") ?? "").trim();
  const close = text.indexOf("</phoneme", word.end);
  const content = text.slice(from + tagEnd + 1, close < 0 ? word.end : close);
  const words = content.trim().split(/\s+/);
  const mine = shareOf(transcription, {
    isIpa: alphabet === "ipa",
    count: words.length,
    index:
      before.slice(tagEnd + 1).trim() === ""
        ? 0
        : before
            .slice(tagEnd + 1)
            .trim()
            .split(/\s+/).length,
  });
  if (mine === null) return null;
  const phones =
    alphabet === "ipa" ? phonesOfIpa(mine) : alphabet === "cmu-arpabet" ? phonesOfArpabet(mine) : [];
  return phones.length > 0 ? phones : null;
}

/** Each of several words has its own part, where an IPA transcription has as many. */
function shareOf(
  transcription: string,
  { isIpa, count, index }: { readonly isIpa: boolean; readonly count: number; readonly index: number },
): string | null {
  if (count === 1) return transcription;
  const parts = isIpa ? transcription.split(/\s+/) : [];
  return parts.length === count ? (parts[index] ?? null) : null;
}

function attributeOf(tag: string, name: string): string | undefined {
  return new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`)
    .exec(tag)
    ?.slice(1)
    .find((value) => value !== undefined);
}
