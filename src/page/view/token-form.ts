/** Where a token is pasted, for a gateway that wants one. It leaves the field at once, and is in memory only. */
import { byId } from "./dom.ts";
import type { PlainError } from "./plain-words.ts";

export class TokenForm {
  readonly #form = byId("token-form", HTMLFormElement);
  readonly #field = byId("token", HTMLInputElement);
  readonly #what = byId("token-what", HTMLElement);
  readonly #advice = byId("token-advice", HTMLElement);

  constructor(onToken: (token: string) => void) {
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      const token = this.#field.value.trim();
      this.#field.value = "";
      if (token !== "") onToken(token);
    });
  }

  show({ what, advice }: PlainError): void {
    this.#what.textContent = what;
    this.#advice.textContent = advice;
    this.#form.hidden = false;
  }

  hide(): void {
    this.#form.hidden = true;
  }
}
