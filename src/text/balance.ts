/** Finds SSML elements that are opened and not closed, or the other way round, in a text that comes in any pieces. */
import { CodePointReader } from "./code-points.ts";
import { TagGate } from "./markup.ts";
import { readTag, type Tag, WHOLE_ELEMENTS } from "./tags.ts";

/** `<break>` is not among them: vendors take it without a slash. */
const PAIRED: ReadonlySet<string> = new Set([
  ...WHOLE_ELEMENTS,
  ...["prosody", "speak", "p", "s", "voice", "lang", "audio"],
]);
const MAX_NAMES = 16;
const MAX_DEPTH = 64;

export class TagBalance {
  readonly #reader = new CodePointReader((codePoint, index) => this.#gate.step(codePoint, index));
  readonly #gate = new TagGate(
    { character: () => undefined, tag: (start, end) => this.#tag(start, end) },
    { hasBracketTags: false },
  );
  /** Text from `#base` on: what may be a tag, and what was pushed last. */
  #text = "";
  #base = 0;
  #open: string[] = [];
  /** Elements open beyond `MAX_DEPTH`: counted, not named. */
  #deeper = 0;
  readonly #odd = new Set<string>();

  push(text: string): void {
    this.#text += text;
    this.#reader.push(text);
    const keepFrom = this.#gate.settledTo(this.#reader.offset);
    this.#text = this.#text.slice(keepFrom - this.#base);
    this.#base = keepFrom;
  }

  /**
   * The text is complete: names of elements without their other half, each once, at most 16: "sub" was not closed,
   * "/sub" was not opened.
   */
  end(): readonly string[] {
    for (const name of this.#open) this.#note(name);
    this.#open = [];
    this.#deeper = 0;
    return [...this.#odd];
  }

  #tag(start: number, end: number): void {
    const tag = readTag(this.#text.slice(start - this.#base, end - this.#base));
    if (tag !== null && PAIRED.has(tag.name)) this.#match(tag);
  }

  #match({ name, role }: Tag): void {
    if (role === "opening") {
      if (this.#open.length < MAX_DEPTH) this.#open.push(name);
      else this.#deeper += 1;
    } else if (role === "closing") {
      if (this.#deeper > 0) this.#deeper -= 1;
      else this.#close(name);
    }
  }

  /** What was opened inside and not closed is what is odd, not the element around it. */
  #close(name: string): void {
    const index = this.#open.lastIndexOf(name);
    if (index < 0) this.#note(`/${name}`);
    else for (const inner of this.#open.splice(index).slice(1)) this.#note(inner);
  }

  #note(name: string): void {
    if (this.#odd.size < MAX_NAMES) this.#odd.add(name);
  }
}
