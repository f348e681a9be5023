/** Pronunciation lexicons in W3C PLS 1.0, to and from rules. */
import { ALPHABETS, type Alphabet } from "./phonemes.ts";
import type { PronunciationRule } from "./pronunciation.ts";
import { escapeXml, parseXml, type XmlElement, XmlError } from "./xml.ts";

const NAMESPACE = "http://www.w3.org/2005/01/pronunciation-lexicon";
const DEFAULT_ALPHABET = "ipa";

/**
 * The rules of a lexicon, one for each grapheme: case matters to them, and they match whole words. Of several pronunciations of
 * a lexeme the preferred one is taken, else the first. Throws XmlError.
 */
export function readPls(document: string): PronunciationRule[] {
  const root = parseXml(document);
  if (root.name !== "lexicon") throw new XmlError(`expected <lexicon>, not <${root.name}>`);
  return root.children.filter(({ name }) => name === "lexeme").flatMap((lexeme) => rulesOf(lexeme, root));
}

function rulesOf(lexeme: XmlElement, root: XmlElement): PronunciationRule[] {
  const graphemes = textsOf(lexeme, "grapheme");
  const said = lexeme.children.filter(({ name }) => name === "phoneme" || name === "alias");
  const chosen = said.find(({ attributes }) => attributes.get("prefer") === "true") ?? said[0];
  if (graphemes.length === 0 || chosen === undefined) {
    const shown = (graphemes[0] ?? "").slice(0, 40);
    throw new XmlError(`the lexeme "${shown}" has no grapheme, or neither phoneme nor alias`);
  }
  const text = chosen.text.trim();
  return graphemes.map((stringToReplace) => {
    const base = { stringToReplace, caseSensitive: true, wordBoundaries: true };
    if (chosen.name === "alias") return { ...base, type: "alias", alias: text };
    return { ...base, type: "phoneme", phoneme: text, alphabet: alphabetOf(chosen, root) };
  });
}

function alphabetOf(phoneme: XmlElement, root: XmlElement): Alphabet {
  const name = phoneme.attributes.get("alphabet") ?? root.attributes.get("alphabet") ?? DEFAULT_ALPHABET;
  const known = ALPHABETS.find((alphabet) => alphabet === name);
  if (known !== undefined) return known;
  throw new XmlError(`the alphabet "${name.slice(0, 40)}" is none of ${ALPHABETS.join(", ")}`);
}

function textsOf(lexeme: XmlElement, name: string): string[] {
  return lexeme.children.filter((child) => child.name === name).map((child) => child.text.trim());
}

/** A lexicon of the rules; PLS has no words for case and word boundaries, so these are left out. */
export function writePls(rules: readonly PronunciationRule[]): string {
  const lexemes = rules.map((rule) => {
    const said =
      rule.type === "alias"
        ? `<alias>${escapeXml(rule.alias)}</alias>`
        : `<phoneme alphabet="${rule.alphabet}">${escapeXml(rule.phoneme)}</phoneme>`;
    return `  <lexeme>\n    <grapheme>${escapeXml(rule.stringToReplace)}</grapheme>\n    ${said}\n  </lexeme>\n`;
  });
  const head = '<?xml version="1.0" encoding="UTF-8"?>\n';
  const open = `<lexicon version="1.0" xmlns="${NAMESPACE}" alphabet="${DEFAULT_ALPHABET}" xml:lang="en-US">\n`;
  return `${head}${open}${lexemes.join("")}</lexicon>\n`;
}
