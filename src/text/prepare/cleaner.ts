/**
 * Takes out what is written to be seen and not to be said. Text comes in any pieces; every decision looks at a bounded
 * span ahead and is made only once that span is known, so that the split makes no difference.
 */
import type { Cleaning } from "../../protocol/vocabulary.ts";
import {
  type AddressStart,
  addressAt,
  findAddress,
  isStoppedWord,
  openAddressStart,
  URL_REST,
} from "./addresses.ts";
import { type Block, blockAt, closingFenceEnd, type Fence } from "./blocks.ts";
import { openEmojiStart } from "./emoji.ts";
import { InlineScanner } from "./inline-scanner.ts";
import { readsAsWhole } from "./letters.ts";
import { type Following, NO_MATCH, skip, WAIT } from "./match.ts";
import type { Replacer } from "./replacer.ts";
import { SpecialFinder } from "./special.ts";

export class Cleaner {
  readonly #wants: ReadonlySet<Cleaning>;
  readonly #hasBlocks: boolean;
  readonly #inline: InlineScanner;
  /** What may be more than plain text, in plain lines and in those that pause at their end. */
  readonly #special: SpecialFinder;
  readonly #specialInPausingLine: SpecialFinder;
  #isLineStart = true;
  #fence: Fence | null = null;
  /** Within a line of a fence's code that is dropped. */
  #isInCodeLine = false;
  #isInLongUrl = false;
  #address: AddressStart | null = null;
  #searchFrom = 0;
  /** No address starts in what is there. */
  #isSearched = false;

  /** `dropsAudioTags`: `[laughs]` goes too. */
  constructor(clean: readonly Cleaning[], sink: Replacer, dropsAudioTags: boolean) {
    this.#wants = new Set(clean);
    this.#hasBlocks = this.#wants.has("markdown") || this.#wants.has("code");
    this.#inline = new InlineScanner(this.#wants, sink, dropsAudioTags);
    const marks = specialMarks(this.#wants);
    const hasEmoji = this.#wants.has("emoji");
    this.#special = new SpecialFinder(marks, hasEmoji);
    this.#specialInPausingLine = new SpecialFinder(`${marks} \t\r|`, hasEmoji);
  }

  get heldChars(): number {
    return this.#inline.text.length;
  }

  push(text: string): void {
    this.#inline.text += text;
    this.#isSearched = false;
    this.#run("more");
  }

  /**
   * Text stands still: settles plain words, after a `long` wait addresses and emoji too, where what is held reads as
   * whole. Markup that is open stays open: as text it would be read out, and a fence that closes taken for one that opens.
   */
  stall(wait: "short" | "long"): void {
    const { text } = this.#inline;
    const isWhole = wait === "short" ? text === "!" || isStoppedWord(text) : readsAsWhole(text);
    if (isWhole) this.finish("stall");
  }

  finish(following: "stall" | "pause" | "end"): void {
    this.#run(following);
    if (following === "end") this.#inline.endLine();
    else this.#inline.line.forget();
  }

  #run(following: Following): void {
    const scanner = this.#inline;
    scanner.following = following;
    const limit = this.#limit();
    while (scanner.at < limit && this.#step(limit));
    this.#searchFrom = Math.max(this.#searchFrom - scanner.at, 0);
    if (this.#address) {
      const { kind, start, next } = this.#address;
      this.#address =
        start < scanner.at ? null : { kind, start: start - scanner.at, next: next - scanner.at };
    }
    scanner.trim();
  }

  /** No decision starts at or behind this offset yet. */
  #limit(): number {
    const { text, following } = this.#inline;
    if (following !== "more") return text.length;
    const forAddress = this.#wants.has("urls") ? openAddressStart(text) : text.length;
    return this.#wants.has("emoji") ? Math.min(forAddress, openEmojiStart(text)) : forAddress;
  }

  /** One decision; false = more text is needed for it. */
  #step(limit: number): boolean {
    if (this.#isInLongUrl) return this.#longUrl();
    if (this.#fence && this.#wants.has("code")) return this.#fencedCode(this.#fence);
    if (this.#inline.closePending()) return true;
    if (this.#isLineStart && this.#hasBlocks) return this.#lineStart();
    return this.#inlineStep(limit);
  }

  #longUrl(): boolean {
    const end = skip(URL_REST, this.#inline.text, this.#inline.at);
    this.#isInLongUrl = end >= this.#inline.text.length && this.#inline.following !== "pause";
    if (end > this.#inline.at) this.#inline.drop(end);
    return true;
  }

  #fencedCode(fence: Fence): boolean {
    const scanner = this.#inline;
    if (!this.#isInCodeLine) {
      const end = closingFenceEnd(scanner, scanner.at, fence);
      if (end === WAIT) return false;
      if (end >= 0) {
        this.#fence = null;
        this.#isLineStart = true;
        scanner.dropBlock(end);
        return true;
      }
    }
    const newline = scanner.text.indexOf("\n", scanner.at);
    this.#isInCodeLine = newline < 0;
    scanner.dropBlock(newline < 0 ? scanner.text.length : newline + 1);
    return true;
  }

  #lineStart(): boolean {
    const scanner = this.#inline;
    if (this.#fence) return this.#keptFence(this.#fence);
    const block = blockAt(scanner, scanner.at, this.#wants.has("markdown"));
    if (block.kind === "wait") return false;
    this.#isLineStart = block.kind === "quote" || block.kind === "fence";
    if (block.kind !== "none" && block.kind !== "quote") scanner.emphasis.clear();
    scanner.startLine(block.kind);
    this.#takeMarker(block);
    return true;
  }

  #takeMarker(block: Block): void {
    const scanner = this.#inline;
    if (!("end" in block)) return;
    if (block.kind === "ordered") {
      scanner.keep(block.end);
      return;
    }
    if (block.kind === "fence") {
      this.#fence = block.fence;
      this.#isInCodeLine = false;
      scanner.isInFence = !this.#wants.has("code");
      scanner.dropBlock(block.end);
      return;
    }
    // A table's separator row goes with its line's end: the next row starts here.
    if (block.kind === "rule" && scanner.text[block.end - 1] === "\n") this.#isLineStart = true;
    scanner.drop(block.end);
  }

  /** Code that is read: the fence's own lines go, what is between them stays as it is. */
  #keptFence(fence: Fence): boolean {
    const scanner = this.#inline;
    const end = closingFenceEnd(scanner, scanner.at, fence);
    if (end === WAIT) return false;
    if (end === NO_MATCH) {
      this.#isLineStart = false;
      return true;
    }
    this.#fence = null;
    scanner.isInFence = false;
    scanner.dropBlock(end);
    return true;
  }

  #inlineStep(limit: number): boolean {
    const scanner = this.#inline;
    const address = this.#nextAddress();
    if (address?.start === scanner.at) return this.#takeAddress(address);
    const to = Math.min(limit, address?.start ?? limit, scanner.pendingAt);
    const special = scanner.line.isWanted ? this.#specialInPausingLine : this.#special;
    const at = special.next(scanner.text, scanner.at, to);
    if (at > scanner.at) {
      scanner.keep(at);
      return true;
    }
    if (scanner.text[at] === "\n") {
      scanner.newline();
      this.#isLineStart = true;
      return true;
    }
    return scanner.special();
  }

  #nextAddress(): AddressStart | null {
    if (!this.#wants.has("urls") || this.#isSearched) return null;
    const { text, at } = this.#inline;
    if (this.#address && this.#address.start >= at) return this.#address;
    const from = Math.max(this.#searchFrom, at, this.#address?.next ?? 0);
    this.#address = from < text.length ? findAddress(text, from, at, this.#inline.beforeText) : null;
    this.#isSearched = this.#address === null;
    this.#searchFrom = this.#address?.next ?? Math.max(from, text.length - 3);
    return this.#address;
  }

  #takeAddress(start: AddressStart): boolean {
    const scanner = this.#inline;
    const address = addressAt(scanner.plainView, start);
    if (address === WAIT) return false;
    this.#searchFrom = start.next;
    this.#address = null;
    if (typeof address === "number") return true;
    scanner.put(address.end, address.spoken);
    this.#isInLongUrl = address.isCut;
    return true;
  }
}

/** Tags, line ends, Markdown's marks: by what is wanted. */
function specialMarks(wants: ReadonlySet<Cleaning>): string {
  return `<[${wants.has("markdown") ? "*_~`\\!\n" : ""}${wants.has("code") ? "`\n" : ""}`;
}
