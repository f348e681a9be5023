/** Pronunciation lexicons in W3C PLS 1.0, to and from rules. */
import { ALPHABETS, type Alphabet } from "./phonemes.ts";
import type { PronunciationRule } from "./pronunciation.ts";
import { escapeXml, parseXml, type XmlElement, XmlError } from "./xml.ts";

const NAMESPACE = "http://www.w3.org/2005/01/pronunciation-lexicon";
const DEFAULT_ALPHABET = "ipa";

interface Known {
  readonly attributes: readonly string[];
  readonly children: readonly string[];
}
/** By element. What PLS has for people (metadata, examples) may hold anything. A lexeme's `role` can't be heeded: it is not here. */
const KNOWN: Readonly<Record<string, Known>> = {
  lexicon: { attributes: ["version", "alphabet"], children: ["lexeme", "meta", "metadata"] },
  lexeme: { attributes: [], children: ["grapheme", "phoneme", "alias", "example"] },
  grapheme: { attributes: [], children: [] },
  phoneme: { attributes: ["prefer", "alphabet"], children: [] },
  alias: { attributes: ["prefer"], children: [] },
};

/**
 * The rules of a lexicon, one for each grapheme: case matters to them, and they match whole words. Of several pronunciations of
 * a lexeme the preferred one is taken, else the first. What a lexicon has no word for is refused. Throws XmlError.
 */
export function readPls(document: string): PronunciationRule[] {
  const root = parseXml(document);
  if (root.name !== "lexicon") throw new XmlError(`expected <lexicon>, not <${root.name}>`);
  requireKnown(root);
  return root.children.filter(({ name }) => name === "lexeme").flatMap((lexeme) => rulesOf(lexeme, root));
}

/** Nothing is left out in silence, such as a misspelt <lexem>. */
function requireKnown(element: XmlElement): void {
  const known = KNOWN[element.name];
  if (known === undefined) return;
  for (const [name, value] of element.attributes) {
    // Those of XML and of other vocabularies say nothing about what is read here.
    if (name === "xmlns" || name.includes(":")) continue;
    const shown = `the attribute ${name} of <${element.name}>`;
    if (!known.attributes.includes(name)) throw new XmlError(`${shown} is not one that is acted on`);
    if (name === "prefer" && value !== "true" && value !== "false") {
      throw new XmlError(`${shown} is neither true nor false`);
    }
  }
  for (const child of element.children) {
    if (!known.children.includes(child.name)) {
      throw new XmlError(`<${child.name}> is no element of <${element.name}>`);
    }
    requireKnown(child);
  }
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
