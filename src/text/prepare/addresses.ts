/** Web and mail addresses, and how they are said: `https://www.example.com/a?b` is "example dot com". */
import { codePointBefore, divideHalf } from "../code-points.ts";
import { atEnd, NO_MATCH, skip, type View } from "./match.ts";

/** Units of an address that are looked at; what is longer goes on as `URL_REST`. */
const MAX_ADDRESS = 2048;
const MAX_LOCAL = 64;

/** Letters of scripts without spaces end an address: text goes on behind it without one. */
const UNSPACED =
  "\\p{scx=Han}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Bopo}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Mymr}";
const URL_CHARACTER = `(?:[a-zA-Z0-9\\-._~:/?#@!$&'()*+,;=%]|(?![${UNSPACED}])[\\p{L}\\p{M}\\p{N}])`;
const URL_TEXT = new RegExp(`${URL_CHARACTER}*`, "uy");
/** What goes on behind an address that was longer than is looked at. */
export const URL_REST = new RegExp(`${URL_CHARACTER}*`, "uy");
const LOCAL = /[a-zA-Z0-9._%+-]/;
const DOMAIN = /[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*/y;
const MAIL_DOMAIN = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*\.)+[a-zA-Z][a-zA-Z0-9-]*$/;
/** What may be in the part of an address that is known by what follows: `@`, `://`, `www.`. */
const HEAD = /[a-zA-Z0-9._%+:/-]/;

export interface AddressStart {
  readonly kind: "url" | "mail";
  readonly start: number;
  /** Behind the search: where the next one starts. */
  readonly next: number;
}

interface Address {
  readonly end: number;
  readonly spoken: string;
  /** It was too long to be looked at whole. */
  readonly isCut: boolean;
}

/** The signs by which an address is known. */
const ANCHOR = /@|:\/\/|www\./gi;

/** The next place from `from` on, not before `floor`, where an address may start; null = none in this text. */
export function findAddress(text: string, from: number, floor: number, before: string): AddressStart | null {
  ANCHOR.lastIndex = from;
  for (let found = ANCHOR.exec(text); found !== null; found = ANCHOR.exec(text)) {
    const [anchor] = found;
    const isMail = anchor === "@";
    const start = isMail ? localStart(text, found.index, floor, before) : urlStart(text, found.index, anchor);
    if (start < floor) continue;
    const previous = start > floor ? String.fromCodePoint(codePointBefore(text, start)) : before;
    if (SPACED_WORD.test(previous)) continue;
    return { kind: isMail ? "mail" : "url", start, next: found.index + anchor.length };
  }
  return null;
}

/** An address doesn't start within a word; where words have no spaces between them that can't be seen. */
const SPACED_WORD = new RegExp(`(?![${UNSPACED}])[\\p{L}\\p{M}\\p{N}]`, "u");

function localStart(text: string, at: number, floor: number, before: string): number {
  let start = at;
  while (start > floor && at - start <= MAX_LOCAL && LOCAL.test(text[start - 1] ?? "")) start--;
  // What stands before the floor is gone, but for one character: a name that reaches over it is too long.
  if (at - start > MAX_LOCAL || (start === floor && LOCAL.test(before))) return -1;
  while (start < at && !/[a-zA-Z0-9]/.test(text[start] ?? "")) start++;
  return start === at ? -1 : start;
}

function urlStart(text: string, at: number, anchor: string): number {
  if (anchor !== "://") return at;
  const scheme = text.slice(Math.max(at - 5, 0), at).toLowerCase();
  if (scheme === "https") return at - 5;
  return scheme.endsWith("http") ? at - 4 : -1;
}

/** The address at `start`, or that there is none, or that more text decides. */
export function addressAt(view: View, { kind, start }: AddressStart): Address | number {
  return kind === "mail" ? mailAt(view, start) : urlAt(view, start);
}

function urlAt(view: View, start: number): Address | number {
  const looked = view.text.slice(start, start + MAX_ADDRESS);
  const window = divideHalf(looked).whole;
  const length = skip(URL_TEXT, window, 0);
  // Not before all of it is there: a text that comes in single characters is said as one that comes at once.
  const isCut = looked.length === MAX_ADDRESS && length === window.length;
  if (length >= window.length && !isCut && !view.isFinal) return atEnd(view);
  const url = isCut ? window.slice(0, length) : withoutClosing(window.slice(0, length));
  const host = hostOf(url);
  return host === "" ? NO_MATCH : { end: start + url.length, spoken: host, isCut };
}

/** Without the sentence's punctuation and the brackets that were opened before it. */
function withoutClosing(url: string): string {
  let end = url.length;
  let open = url.split("(").length - url.split(")").length;
  for (; end > 0; end--) {
    const character = url[end - 1] ?? "";
    if (character === ")" && open < 0) open++;
    else if (!".,;:?!'*_~&".includes(character)) break;
  }
  return url.slice(0, end);
}

function hostOf(url: string): string {
  const rest = url.replace(/^https?:\/\//i, "");
  const authority = /^[^/?#]*/.exec(rest)?.[0] ?? "";
  const host = authority
    .slice(authority.lastIndexOf("@") + 1)
    .replace(/:[0-9]*$/, "")
    .replace(/^www\./i, "");
  return /[\p{L}\p{N}]/u.test(host) ? dotted(host.replace(/^\.+|(?<!\.)\.+$/g, "")) : "";
}

function dotted(name: string): string {
  return name.split(/\.+/).join(" dot ");
}

function mailAt(view: View, start: number): Address | number {
  const at = view.text.indexOf("@", start);
  const window = view.text.slice(0, at + 1 + 256);
  const end = skip(DOMAIN, window, at + 1);
  const isOpen = end >= view.text.length || (view.text[end] === "." && end + 1 >= view.text.length);
  if (isOpen && !view.isFinal) return atEnd(view);
  const domain = window.slice(at + 1, end).replace(/(?<!-)-+$/, "");
  if (!MAIL_DOMAIN.test(domain)) return NO_MATCH;
  const spoken = `${dotted(window.slice(start, at))} at ${dotted(domain)}`;
  return { end: at + 1 + domain.length, spoken, isCut: false };
}

const STOPPED_WORD = /^(?!.*(?::\/\/|www\.))(?!https?:)[a-zA-Z0-9._%+:/-]*[a-zA-Z0-9][.:]$/i;
/** Whether `text` is a word and its full stop or colon: far more often the end of a sentence than the head of an address. */
export function isStoppedWord(text: string): boolean {
  return text.length <= MAX_LOCAL && STOPPED_WORD.test(text);
}

/** Where what may become an address starts at the end of `text`; its length where there is nothing. */
export function openAddressStart(text: string): number {
  const { length } = text;
  const lowest = Math.max(length - MAX_LOCAL - 1, 0);
  let start = length;
  while (start > lowest && HEAD.test(text.charAt(start - 1))) start -= 1;
  // Too long for a mail's local part: the head of a URL may still be there.
  return length - start > MAX_LOCAL ? length - 8 : start;
}
