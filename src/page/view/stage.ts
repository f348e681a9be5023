/** Shows the transcript: a span for each word, lit while it is played, and the receipt of what was cut off. */

import type { Lit } from "../speech/transcript.ts";
import type { Line, Receipt, Utterance } from "../speech/utterance.ts";
import { byId, make } from "./dom.ts";

interface WordSpan {
  readonly word: HTMLElement;
  /** What stands between it and the next word: it is past together with the word. */
  readonly rest: HTMLElement;
}

interface UtteranceView {
  readonly element: HTMLElement;
  /** By index of the word; sparse where a word is not shown. */
  spans: (WordSpan | undefined)[];
  /** Words before this one are past. */
  pastCount: number;
  /** -1 = none. */
  litIndex: number;
}

export class Stage {
  readonly #box = byId("transcript", HTMLElement);
  readonly #hint = byId("hint", HTMLElement);
  readonly #views = new Map<Utterance, UtteranceView>();
  readonly #changed = new Set<Utterance>();
  readonly #voiceName: (voiceId: string) => string;
  #latest: UtteranceView | null = null;

  /** `voiceName` names the lines of a dialogue. */
  constructor(options: { readonly voiceName: (voiceId: string) => string; readonly isListener: boolean }) {
    this.#voiceName = options.voiceName;
    if (options.isListener)
      this.#hint.textContent = "Whatever is spoken in this session shows here, word by word, as you hear it.";
  }

  /** An utterance got new text, words or another state; it is shown with the next `draw`. */
  touch(utterance: Utterance): void {
    this.#changed.add(utterance);
  }

  /** Brings the page in line with the transcript and lights a word; everything before it in its utterance is past. */
  draw(all: readonly Utterance[], lit: Lit | null): void {
    if (this.#changed.size > 0) this.#renderChanged(all);
    const view = lit === null ? null : (this.#views.get(lit.utterance) ?? null);
    // Speech that was lost was heard as far as it sounded.
    if (this.#latest !== null && this.#latest !== view && this.#latest.element.dataset.state !== "lost")
      mark(this.#latest, { pastCount: Number.POSITIVE_INFINITY, litIndex: -1 });
    this.#latest = view;
    if (lit === null || view === null) return;
    const litIndex = lit.isSounding ? lit.index : -1;
    if (!mark(view, { pastCount: lit.isSounding ? lit.index : lit.index + 1, litIndex })) return;
    this.#follow(view.spans[litIndex]?.word);
  }

  #renderChanged(all: readonly Utterance[]): void {
    this.#hint.hidden = true;
    for (const utterance of this.#changed) {
      if (!all.includes(utterance)) continue;
      const view = this.#viewOf(utterance);
      view.element.dataset.state = utterance.state;
      this.#render(utterance, view);
    }
    this.#changed.clear();
    for (const [utterance, view] of this.#views) {
      if (all.includes(utterance)) continue;
      view.element.remove();
      this.#views.delete(utterance);
    }
  }

  #viewOf(utterance: Utterance): UtteranceView {
    const known = this.#views.get(utterance);
    if (known !== undefined) return known;
    const view: UtteranceView = {
      element: make("article", { class: "utterance" }),
      spans: [],
      pastCount: 0,
      litIndex: -1,
    };
    this.#views.set(utterance, view);
    this.#box.append(view.element);
    // Not while another one is read: its lit word keeps the view.
    if (this.#latest === null || this.#latest.litIndex < 0)
      requestAnimationFrame(() => this.#scrollTo(view.element));
    return view;
  }

  #render(utterance: Utterance, view: UtteranceView): void {
    const { lines, text, receipt, lostFrom } = utterance;
    view.spans = [];
    const children: Node[] = [];
    for (const line of lines) {
      if (lines.length > 1 && line.voiceId !== null) {
        children.push(make("p", { class: "who", text: this.#voiceName(line.voiceId) }));
      }
      children.push(
        lostFrom === null
          ? renderLine(utterance, line, view.spans)
          : renderLostLine(text.slice(line.start, line.end), lostFrom - line.start),
      );
    }
    if (lostFrom !== null) children.push(make("p", { class: "receipt", text: lostText(lostFrom, text) }));
    if (receipt !== null) children.push(make("p", { class: "receipt", text: receiptText(receipt, text) }));
    if (utterance.state === "cancelled") {
      children.push(make("p", { class: "receipt", text: "Cancelled before it began." }));
    }
    view.element.replaceChildren(...children);
    const { pastCount, litIndex } = view;
    for (const [index, span] of view.spans.entries()) paint(span, index, { pastCount, litIndex });
  }

  /** Keeps the lit word in the visible part of the box, without moving the page around it. */
  #follow(span: HTMLElement | undefined): void {
    if (span === undefined) return;
    const box = this.#box.getBoundingClientRect();
    const word = span.getBoundingClientRect();
    if (word.top < box.top + word.height || word.bottom > box.bottom - word.height) this.#scrollTo(span);
  }

  #scrollTo(element: HTMLElement): void {
    const box = this.#box.getBoundingClientRect();
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const top = element.getBoundingClientRect().top - box.top - box.height / 4;
    this.#box.scrollBy({ top, behavior: isCalm ? "instant" : "smooth" });
  }
}

function renderLine(utterance: Utterance, line: Line, spans: (WordSpan | undefined)[]): HTMLElement {
  const { text, words, receipt } = utterance;
  const cutAt = receipt?.heardEnd ?? Number.POSITIVE_INFINITY;
  const paragraph = make("p", { class: "line", attributes: { dir: "auto" } });
  let target: HTMLElement = paragraph;
  const put = (start: number, end: number) => {
    // Split where the cut is, so that only what was not played is struck out.
    const middle = Math.min(Math.max(cutAt, start), end);
    if (middle > start) target.append(text.slice(start, middle));
    if (end > middle) target.append(make("span", { class: "unheard", text: text.slice(middle, end) }));
  };
  let at = line.start;
  for (const [index, word] of words.entries()) {
    if (word.start < at || word.start >= line.end) continue;
    put(at, word.start);
    const span = make("span", {
      class: word.start >= cutAt ? "word unheard" : "word",
      text: text.slice(word.start, word.end),
    });
    const rest = make("span");
    spans[index] = { word: span, rest };
    paragraph.append(span, rest);
    target = rest;
    at = word.end;
  }
  put(at, line.end);
  return paragraph;
}

/** Nothing of it lights any more. `heardEnd`: offset in the line, possibly before or behind it. */
function renderLostLine(text: string, heardEnd: number): HTMLElement {
  const at = Math.min(Math.max(heardEnd, 0), text.length);
  const paragraph = make("p", { class: "line", attributes: { dir: "auto" } });
  paragraph.append(
    make("span", { class: "past", text: text.slice(0, at) }),
    make("span", { class: "unheard", text: text.slice(at) }),
  );
  return paragraph;
}

interface Marks {
  readonly pastCount: number;
  readonly litIndex: number;
}

/** Repaints the words between the old marks and the new ones; false where nothing changed. */
function mark(view: UtteranceView, next: Marks): boolean {
  const pastCount = Math.min(next.pastCount, view.spans.length);
  if (view.pastCount === pastCount && view.litIndex === next.litIndex) return false;
  const touched = [view.pastCount, pastCount, view.litIndex, next.litIndex].filter((index) => index >= 0);
  view.pastCount = pastCount;
  view.litIndex = next.litIndex;
  for (let index = Math.min(...touched); index <= Math.max(...touched); index += 1) {
    paint(view.spans[index], index, view);
  }
  return true;
}

function paint(span: WordSpan | undefined, index: number, marks: Marks): void {
  span?.word.classList.toggle("lit", index === marks.litIndex);
  span?.word.classList.toggle("past", index < marks.pastCount);
  span?.rest.classList.toggle("past", index < marks.pastCount);
}

function receiptText(receipt: Receipt, text: string): string {
  const how = { mark: "by marks", ack: "by the player", estimate: "estimated" }[receipt.source];
  const seconds = (receipt.heardMs / 1000).toFixed(2);
  const least = receipt.listeners > 1 ? `, the least of ${receipt.listeners} listeners` : "";
  return `Stopped. Heard ${receipt.heardEnd} of ${text.length} characters, ${seconds} s (${how}, ±${Math.round(receipt.boundMs)} ms${least}).`;
}

function lostText(lostFrom: number, text: string): string {
  return lostFrom === 0
    ? "Not heard: the connection was lost before it began."
    : `Broken off: the connection was lost. Heard ${lostFrom} of ${text.length} characters.`;
}
