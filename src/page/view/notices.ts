/** The status line and the alert: how the connection stands, and what went wrong in plain words. */
import { byId } from "./dom.ts";
import type { PlainError } from "./plain-words.ts";

export type StatusKind = "connecting" | "ready" | "speaking" | "trouble";

export class Notices {
  readonly #status = byId("status", HTMLElement);
  readonly #statusText = byId("status-text", HTMLElement);
  readonly #alert = byId("alert", HTMLElement);
  readonly #retry = byId("alert-retry", HTMLButtonElement);
  #onRetry: (() => void) | null = null;

  constructor() {
    byId("alert-close", HTMLButtonElement).addEventListener("click", () => this.clearAlert());
    this.#retry.addEventListener("click", () => this.#onRetry?.());
  }

  /** Written only when it changes: a screen reader reads every write out. */
  status(kind: StatusKind, text: string): void {
    this.#status.dataset.kind = kind;
    if (this.#statusText.textContent !== text) this.#statusText.textContent = text;
  }

  /** With `onRetry` the alert offers to try at once. */
  alert(error: PlainError, onRetry: (() => void) | null = null): void {
    byId("alert-what", HTMLElement).textContent = error.what;
    byId("alert-advice", HTMLElement).textContent = error.advice;
    this.#onRetry = onRetry;
    this.#retry.hidden = onRetry === null;
    this.#alert.hidden = false;
  }

  clearAlert(): void {
    this.#alert.hidden = true;
  }
}
