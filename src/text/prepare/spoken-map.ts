/** Where each span of the spoken text stands in the text that the client sent. Offsets are UTF-16, ends exclusive. */

export interface MappedSpan {
  readonly spokenStart: number;
  readonly spokenEnd: number;
  readonly clientStart: number;
  readonly clientEnd: number;
  /** Both sides hold the same characters. */
  readonly isSame: boolean;
}

/**
 * The spans rise and leave no holes on either side. A removed span has `spokenStart === spokenEnd`, an inserted one
 * `clientStart === clientEnd`. Only what differs is kept, so plain text costs nothing; a look-up is a binary search.
 */
export class SpokenMap {
  /** Spans that differ, in order; between them both sides are the same. */
  readonly #changes: MappedSpan[] = [];
  #spokenLength = 0;
  #clientLength = 0;

  /** UTF-16 units of spoken text so far. */
  get spokenLength(): number {
    return this.#spokenLength;
  }

  /** UTF-16 units of client text so far: what is settled, not what is held back. */
  get clientLength(): number {
    return this.#clientLength;
  }

  /** The next `length` units are the same on both sides. */
  addSame(length: number): void {
    this.#spokenLength += length;
    this.#clientLength += length;
  }

  /** The next `clientLength` units of the client's text are spoken as `spokenLength` units; 0 = nothing on that side. */
  addChange(spokenLength: number, clientLength: number): void {
    if (spokenLength === 0 && clientLength === 0) return;
    const spokenStart = this.#spokenLength;
    const before = this.#changes.at(-1);
    let clientStart = this.#clientLength;
    if (spokenLength === 0 && before && isRemoved(before) && before.clientEnd === clientStart) {
      clientStart = before.clientStart;
      this.#changes.pop();
    }
    this.#spokenLength += spokenLength;
    this.#clientLength += clientLength;
    this.#changes.push({
      spokenStart,
      spokenEnd: this.#spokenLength,
      clientStart,
      clientEnd: this.#clientLength,
      isSame: false,
    });
  }

  /**
   * The spans that touch spoken [start, end), clipped to it. A replaced span that is clipped keeps its whole client
   * range. Removed spans at `start` are included, those at `end` are not (they belong to what follows), unless `end`
   * is the end of everything so far and `isLast`.
   */
  spans(start: number, end: number, isLast = false): readonly MappedSpan[] {
    const to = Math.min(end, this.#spokenLength);
    const wantsTail = isLast && end >= this.#spokenLength;
    const found: MappedSpan[] = [];
    let spoken = Math.max(start, 0);
    let i = this.#firstFrom(spoken);
    for (; i < this.#changes.length; i++) {
      const change = this.#changes[i];
      if (!change || change.spokenStart > to || (change.spokenStart === to && !wantsTail)) break;
      if (change.spokenStart > spoken) found.push(this.#same(i, spoken, change.spokenStart));
      found.push(clipped(change, spoken, to));
      spoken = Math.max(spoken, Math.min(change.spokenEnd, to));
    }
    if (spoken < to) found.push(this.#same(i, spoken, to));
    return found;
  }

  /**
   * Client offset of a spoken offset: inside a replaced span, its start; where something was removed, the place
   * behind it; at the end of the spoken text, the end of the client's text.
   */
  toClient(spoken: number): number {
    if (spoken >= this.#spokenLength) return this.#clientLength;
    const at = Math.max(spoken, 0);
    const last = this.spans(at, at + 1).at(-1);
    return last?.clientStart ?? 0;
  }

  /** Client range of a spoken range: from the start of the first span that is spoken to the end of the last. */
  clientRange(start: number, end: number): { start: number; end: number } {
    const spoken = this.spans(start, end).filter((span) => !isRemoved(span));
    const [first, last] = [spoken[0], spoken.at(-1)];
    if (first && last) return { start: first.clientStart, end: last.clientEnd };
    const at = this.toClient(start);
    return { start: at, end: at };
  }

  /**
   * The last place up to `spoken` that is a place of the client's text too: what is said for something else stays whole
   * unless it is longer than `maxChars`, UTF-16 units.
   */
  placeBefore(spoken: number, maxChars: number): number {
    const change = this.#changes[this.#firstFrom(spoken)];
    if (!change || change.spokenStart >= spoken || change.spokenEnd - change.spokenStart > maxChars)
      return spoken;
    return change.spokenStart;
  }

  /** Index of the first change that reaches behind `spoken`, or is removed there. */
  #firstFrom(spoken: number): number {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const change = this.#changes[middle];
      const isBefore =
        change !== undefined &&
        (change.spokenEnd < spoken || (change.spokenEnd === spoken && !isRemoved(change)));
      if (isBefore) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The unchanged span [start, end), which stands before change `next`. */
  #same(next: number, start: number, end: number): MappedSpan {
    const before = this.#changes[next - 1];
    const shift = before ? before.clientEnd - before.spokenEnd : 0;
    return {
      spokenStart: start,
      spokenEnd: end,
      clientStart: start + shift,
      clientEnd: end + shift,
      isSame: true,
    };
  }
}

function isRemoved(span: MappedSpan): boolean {
  return span.spokenStart === span.spokenEnd;
}

function clipped(span: MappedSpan, start: number, end: number): MappedSpan {
  if (span.spokenStart >= start && span.spokenEnd <= end) return span;
  return {
    ...span,
    spokenStart: Math.max(span.spokenStart, start),
    spokenEnd: Math.min(span.spokenEnd, end),
  };
}
