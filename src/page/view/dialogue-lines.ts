/** The lines of a dialogue: each a text and a voice, to be added and removed. */
import type { Voice } from "../catalog.ts";
import { DIALOGUE_EXAMPLE } from "../speech/examples.ts";
import { byId, make } from "./dom.ts";
import { fillVoices } from "./voice-select.ts";

interface DialogueLine {
  readonly element: HTMLLIElement;
  readonly voice: HTMLSelectElement;
  readonly text: HTMLTextAreaElement;
}

export class DialogueLines {
  readonly #list = byId("lines", HTMLOListElement);
  #lines: DialogueLine[] = [];
  #voices: readonly Voice[] = [];

  constructor() {
    byId("add-line", HTMLButtonElement).addEventListener("click", () => this.#add("").text.focus());
    for (const text of DIALOGUE_EXAMPLE) this.#add(text);
  }

  /** What is to be said; lines without text are left out. */
  get inputs(): { text: string; voice_id: string }[] {
    return this.#lines
      .filter((line) => line.text.value.trim() !== "" && line.voice.value !== "")
      .map((line) => ({ text: line.text.value, voice_id: line.voice.value }));
  }

  offer(voices: readonly Voice[]): void {
    this.#voices = voices;
    for (const [index, line] of this.#lines.entries()) fillVoices(line.voice, voices, this.#turnVoice(index));
  }

  focus(): void {
    this.#lines[0]?.text.focus();
  }

  /** Two people by turns: the first two voices that the gateway offers. */
  #turnVoice(index: number): string | undefined {
    return this.#voices[index % 2]?.id ?? this.#voices[0]?.id;
  }

  #add(text: string): DialogueLine {
    const element = make("li", { class: "dialogue-line" });
    const line: DialogueLine = {
      element,
      voice: make("select", { attributes: { "aria-label": "Voice of this line" } }),
      text: make("textarea", { attributes: { rows: "2", dir: "auto", "aria-label": "Text of this line" } }),
    };
    const remove = make("button", {
      class: "button quiet remove",
      text: "Remove",
      attributes: { type: "button", "aria-label": "Remove this line" },
    });
    remove.addEventListener("click", () => this.#remove(line));
    line.text.value = text;
    element.append(line.text, make("div", { class: "line-tools", children: [line.voice, remove] }));
    // The voice of the line before last: in a dialogue of two, that one speaks next.
    fillVoices(
      line.voice,
      this.#voices,
      this.#lines.at(-2)?.voice.value ?? this.#turnVoice(this.#lines.length),
    );
    this.#lines.push(line);
    this.#list.append(element);
    return line;
  }

  #remove(line: DialogueLine): void {
    const index = this.#lines.indexOf(line);
    this.#lines = this.#lines.filter((entry) => entry !== line);
    line.element.remove();
    const neighbour = this.#lines[Math.min(index, this.#lines.length - 1)];
    (neighbour?.text ?? byId("add-line", HTMLButtonElement)).focus();
  }
}
