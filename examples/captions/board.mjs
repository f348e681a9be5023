// The captions of the session, and the one that is seen: its words light up as they are heard.

/** Captions that are kept: minutes of them. */
const MAX_CUES = 256;

export class Board {
  #element;
  #cues = [];
  #shown = null;
  #words = [];
  /** The place that was drawn last, and since when. */
  #placeMs = 0;
  #sinceMs = 0;

  constructor(element) {
    this.#element = element;
  }

  take(event) {
    if (event.type === "cue") {
      this.#cues = [...this.#cues.filter(({ start_ms }) => start_ms !== event.start_ms), event].slice(
        -MAX_CUES,
      );
    } else if (event.type === "interrupted" && event.next_ms !== null) {
      this.#cues = this.#cues
        .filter(({ start_ms }) => start_ms < event.at_ms)
        .map((cue) => ({ ...cue, end_ms: Math.min(cue.end_ms, event.at_ms) }));
    }
  }

  /** Shows what is heard at a place of the timeline. `tell` is called with each word that lights up. */
  draw(placeMs, nowMs, tell) {
    if (placeMs !== this.#placeMs) this.#sinceMs = nowMs;
    this.#placeMs = placeMs;
    // The timeline stands still in silence, but the last caption has to go at its time.
    const passedMs = placeMs + nowMs - this.#sinceMs;
    const cue = this.#cues.findLast(({ start_ms, end_ms }) => start_ms <= placeMs && passedMs < end_ms);
    if (cue?.start_ms !== this.#shown) this.#show(cue);
    for (const { element, word } of this.#words) {
      if (word.start_ms > placeMs || element.className === "heard") continue;
      element.className = "heard";
      tell(word);
    }
  }

  #show(cue) {
    this.#shown = cue?.start_ms;
    this.#words = [];
    const lines = (cue?.lines ?? []).map((line) => this.#lineOf(line));
    if (cue?.speaker !== undefined) lines.unshift(make("b", cue.speaker));
    this.#element.replaceChildren(...lines);
  }

  #lineOf({ text, words }) {
    const line = make("p", "");
    line.dir = "auto";
    let done = 0;
    for (const word of words) {
      const at = text.indexOf(word.text, done);
      if (at < 0) continue;
      const element = make("span", word.text);
      line.append(text.slice(done, at), element);
      this.#words.push({ element, word });
      done = at + word.text.length;
    }
    line.append(text.slice(done));
    return line;
  }
}

function make(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}
