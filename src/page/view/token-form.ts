/** Where a token is pasted, for a gateway that wants one. It leaves the field at once, and is in memory only. */
import { byId } from "./dom.ts";
import type { PlainError } from "./plain-words.ts";

export class TokenForm {
  readonly #form = byId("token-form", HTMLFormElement);
  readonly #field = byId("token", HTMLInputElement);
  readonly #what = byId("token-what", HTMLElement);
  readonly #advice = byId("token-advice", HTMLElement);
  readonly #how = byId("token-how", HTMLElement);
  readonly #command = byId("token-command", HTMLElement);

  constructor(onToken: (token: string) => void) {
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      const token = this.#field.value.trim();
      this.#field.value = "";
      if (token !== "") onToken(token);
    });
  }

  /** `command`: what makes a token; null: nobody has to be told. */
  show({ what, advice }: PlainError, command: string | null): void {
    this.#what.textContent = what;
    this.#advice.textContent = advice;
    this.#how.hidden = command === null;
    this.#command.textContent = command;
    this.#form.hidden = false;
  }

  hide(): void {
    this.#form.hidden = true;
  }
}
