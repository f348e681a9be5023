/** Shows the caption of the moment, where the person wants captions. */
import { byId, make } from "./dom.ts";

export class CaptionBar {
  readonly #bar = byId("captions", HTMLElement);
  readonly #toggle = byId("captions-toggle", HTMLInputElement);
  #shown = "";

  constructor() {
    this.#toggle.addEventListener("change", () => this.#show());
    this.#show();
  }

  /** Cheap where nothing has changed: call it with every picture. */
  draw(lines: readonly string[]): void {
    const text = lines.join("\n");
    if (text === this.#shown) return;
    this.#shown = text;
    this.#bar.replaceChildren(...lines.map((line) => make("p", { text: line, attributes: { dir: "auto" } })));
  }

  #show(): void {
    this.#bar.hidden = !this.#toggle.checked;
  }
}
