/**
 * A strict reader of small XML documents: elements, attributes and text, in time linear in the document. It knows no DTD, no
 * entities but the five that XML has itself, and no CDATA: what has one is refused.
 */

export interface XmlElement {
  /** Without a namespace's prefix. */
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** Its own text and that of the elements in it. */
  readonly text: string;
}

/** The document is not what it should be. */
export class XmlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "XmlError";
  }
}

const MAX_DEPTH = 16;
const DECLARATION = /<\?xml\s[^?>]{0,200}\?>/y;
const COMMENT_START = "<!--";
const COMMENT_END = "-->";
const NAME = "[\\p{L}_][\\p{L}\\p{N}_.-]{0,63}";
const QUALIFIED = `(?:${NAME}:)?(?<name>${NAME})`;
const OPENING = new RegExp(`<${QUALIFIED}`, "uy");
const CLOSING = new RegExp(`</${QUALIFIED}\\s{0,64}>`, "uy");
const ATTRIBUTE = new RegExp(
  `\\s{1,64}(?<full>${QUALIFIED})\\s{0,64}=\\s{0,64}(?:"(?<double>[^"<]{0,2000})"|'(?<single>[^'<]{0,2000})')`,
  "uy",
);
const OPENING_END = /\s{0,64}(?<empty>\/?)>/y;
const TEXT = /[^<]+/y;
const REFERENCE = /&(?:#(?<decimal>\d{1,7})|#x(?<hex>[0-9a-fA-F]{1,6})|(?<name>[a-z]{1,8}));|&/g;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Throws XmlError. */
export function parseXml(document: string): XmlElement {
  return new Reader(document).read();
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(document: string) {
    this.#text = document.replace(/^\ufeff/, "");
  }

  read(): XmlElement {
    this.#match(DECLARATION);
    this.#skip();
    const root = this.#element(0);
    this.#skip();
    if (this.#at < this.#text.length) throw this.#error("expected nothing after the outermost element");
    return root;
  }

  #element(depth: number): XmlElement {
    const name = this.#match(OPENING)?.groups?.name;
    if (name === undefined) throw this.#error("expected an element");
    if (depth >= MAX_DEPTH) throw this.#error(`more than ${MAX_DEPTH} elements inside each other`);
    const attributes = this.#attributes();
    const end = this.#match(OPENING_END);
    if (end === undefined) throw this.#error(`the element <${name}> does not end`);
    if (end.groups?.empty === "/") return { name, attributes, children: [], text: "" };
    const children: XmlElement[] = [];
    const texts: string[] = [];
    for (;;) {
      const closing = this.#match(CLOSING);
      if (closing !== undefined) {
        if (closing.groups?.name !== name) throw this.#error(`expected </${name}>`);
        return { name, attributes, children, text: texts.join("") };
      }
      if (this.#text.startsWith(COMMENT_START, this.#at)) {
        this.#skipComment();
        continue;
      }
      const text = this.#match(TEXT);
      if (text !== undefined) {
        texts.push(this.#resolve(text[0]));
        continue;
      }
      const child = this.#element(depth + 1);
      children.push(child);
      texts.push(child.text);
    }
  }

  #attributes(): ReadonlyMap<string, string> {
    const attributes = new Map<string, string>();
    for (let found = this.#match(ATTRIBUTE); found !== undefined; found = this.#match(ATTRIBUTE)) {
      const { full = "", double, single } = found.groups ?? {};
      if (attributes.has(full)) throw this.#error(`the attribute ${full} stands twice`);
      attributes.set(full, this.#resolve(double ?? single ?? ""));
    }
    return attributes;
  }

  #resolve(text: string): string {
    let resolved = "";
    let at = 0;
    // One by one: replace() would look for all before it called anything.
    for (const { 0: reference, index, groups = {} } of text.matchAll(REFERENCE)) {
      const { decimal, hex = "", name } = groups;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      const char = name === undefined ? fromCode(code) : ENTITIES[name];
      if (char === undefined) throw this.#error(`there is no entity ${reference.slice(0, 12)}`);
      resolved += text.slice(at, index) + char;
      at = index + reference.length;
    }
    return resolved + text.slice(at);
  }

  /** Spaces and comments between elements. */
  #skip(): void {
    for (;;) {
      while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
      if (!this.#text.startsWith(COMMENT_START, this.#at)) return;
      this.#skipComment();
    }
  }

  #skipComment(): void {
    const end = this.#text.indexOf(COMMENT_END, this.#at + COMMENT_START.length);
    if (end < 0) throw this.#error("a comment does not end");
    this.#at = end + COMMENT_END.length;
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return undefined;
    this.#at = pattern.lastIndex;
    return found;
  }

  #error(message: string): XmlError {
    const isDoctype = this.#text.startsWith("<!DOCTYPE", this.#at);
    const line = this.#text.slice(0, this.#at).split("\n").length;
    return new XmlError(`line ${line}: ${isDoctype ? "a document type (DTD) is not read" : message}`);
  }
}

/** Undefined where XML allows no such character. */
function fromCode(code: number): string | undefined {
  const isAllowed =
    (code >= 0x20 && code <= 0xd7ff) || (code >= 0xe000 && code <= 0x10ffff) || [9, 10, 13].includes(code);
  return isAllowed ? String.fromCodePoint(code) : undefined;
}

/** `text` as it may stand in an element or between double quotes. */
export function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (char) => XML_ESCAPES[char] ?? char);
}

const XML_ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};
