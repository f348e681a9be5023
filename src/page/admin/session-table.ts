/** The sessions as rows. One row is a tab stop: arrow keys move between them, Enter opens one. */
import type { LiveSession, LiveView } from "../../protocol/live-view.ts";
import { byId, make } from "../view/dom.ts";
import { count, LATE_MS, shortBytes, shortMs, shortTime } from "./figures.ts";
import { type Cell, type Column, Rows } from "./rows.ts";

const STATES = { speaking: "Speaking", waiting: "Waiting", idle: "Idle" } as const;

const zeroIsQuiet = (value: number, text: string): Cell => ({
  text,
  look: value === 0 ? "quiet" : undefined,
});
const badUnlessZero = (value: number): Cell => ({ text: count(value), look: value > 0 ? "late" : "quiet" });

const COLUMNS: readonly Column<LiveSession>[] = [
  { head: "Session", cell: ({ name }) => ({ text: name }) },
  {
    head: "State",
    cell: ({ state, utterances }) => ({
      text: utterances > 1 ? `${STATES[state]}, ${count(utterances - 1)} queued` : STATES[state],
      look: state === "idle" ? "quiet" : undefined,
    }),
  },
  {
    head: "Lead",
    isNumber: true,
    isLeftOut: "detail",
    cell: ({ lead_ms }) => zeroIsQuiet(lead_ms, shortMs(lead_ms)),
  },
  {
    head: "Listeners",
    isNumber: true,
    isLeftOut: "detail",
    cell: ({ listeners, calls }) =>
      zeroIsQuiet(listeners, calls > 0 ? `${count(listeners)} (${count(calls)} calls)` : count(listeners)),
  },
  {
    head: "Lag",
    isNumber: true,
    cell: ({ lag_ms }) => ({ text: shortMs(lag_ms), look: lag_ms >= LATE_MS ? "late" : undefined }),
  },
  {
    head: "Waits",
    isNumber: true,
    isLeftOut: "detail",
    cell: ({ queue_bytes }) => zeroIsQuiet(queue_bytes, shortBytes(queue_bytes)),
  },
  { head: "Dropped", isNumber: true, cell: ({ dropped_frames }) => badUnlessZero(dropped_frames) },
  {
    head: "Underruns",
    isNumber: true,
    isLeftOut: "detail",
    cell: ({ underruns }) => badUnlessZero(underruns),
  },
  {
    head: "Cut",
    isNumber: true,
    isLeftOut: "minor",
    cell: ({ interrupts }) => zeroIsQuiet(interrupts, count(interrupts)),
  },
  { head: "Voice", isLeftOut: "minor", cell: ({ voice }) => ({ text: voice, look: "quiet" }) },
  { head: "Tenant", isLeftOut: "minor", cell: ({ tenant }) => ({ text: tenant }) },
  { head: "At", isLeftOut: "minor", cell: ({ node }) => ({ text: node, look: "quiet" }) },
  { head: "Open for", isNumber: true, isLeftOut: "minor", cell: ({ age_s }) => ({ text: shortTime(age_s) }) },
];

export class SessionTable {
  readonly #body = byId("session-rows", HTMLElement);
  readonly #box = byId("table-box", HTMLElement);
  readonly #rows: Rows<LiveSession>;
  readonly #canHover = matchMedia("(hover: hover)");

  constructor(onOpen: (name: string) => void) {
    this.#rows = new Rows(
      { heads: byId("session-heads", HTMLElement), body: this.#body },
      COLUMNS,
      ({ name }) => name,
    );
    this.#body.addEventListener("click", ({ target }) => {
      const row = target instanceof Element ? target.closest("tr") : null;
      if (row?.dataset.key !== undefined) onOpen(row.dataset.key);
    });
    this.#body.addEventListener("keydown", (event) => this.#onKey(event));
    this.#body.addEventListener("focusin", ({ target }) => {
      if (target instanceof HTMLButtonElement) this.#makeStop(target);
    });
  }

  show({ total, matching, rows }: LiveView["sessions"], prefix: string): void {
    const focused = document.activeElement;
    const wasInside = this.#body.contains(focused);
    this.#rows.show(rows, this.#isHeld);
    for (const row of this.#body.children) this.#nameRow(row);
    // A row that was moved, or has gone, takes the focus with it.
    if (wasInside && !this.#body.contains(document.activeElement)) {
      if (focused instanceof HTMLElement && focused.isConnected) focused.focus({ preventScroll: true });
      else this.#buttons[0]?.focus({ preventScroll: true });
    }
    if (this.#stop === null) this.#buttons[0]?.setAttribute("tabindex", "0");
    this.#box.hidden = rows.length === 0;
    const none = byId("no-sessions", HTMLElement);
    none.hidden = rows.length > 0;
    none.textContent = prefix === "" ? "No session is open." : `No session's name begins with “${prefix}”.`;
    byId("session-count", HTMLElement).textContent =
      matching === rows.length && matching === total
        ? count(total)
        : `${count(rows.length)} of ${count(matching)}`;
  }

  /** Focuses the row of a session that was opened, or the first. */
  focus(name: string): void {
    const button = this.#buttons.find(({ textContent }) => textContent === name) ?? this.#buttons[0];
    button?.focus();
  }

  /** While somebody is in the table no row moves away from under them. */
  get #isHeld(): boolean {
    return (
      this.#body.contains(document.activeElement) || (this.#canHover.matches && this.#body.matches(":hover"))
    );
  }

  get #buttons(): HTMLButtonElement[] {
    return [...this.#body.querySelectorAll("button")];
  }

  get #stop(): HTMLButtonElement | null {
    return this.#body.querySelector("button[tabindex='0']");
  }

  /** The name is a button: a reader says that it can be opened. */
  #nameRow(row: Element): void {
    const cell = row.firstElementChild;
    if (cell === null || cell.firstElementChild !== null) return;
    const button = make("button", {
      class: "row-name",
      text: cell.textContent ?? "",
      attributes: { type: "button", tabindex: "-1" },
    });
    cell.replaceChildren(button);
  }

  #makeStop(button: HTMLButtonElement): void {
    this.#stop?.setAttribute("tabindex", "-1");
    button.setAttribute("tabindex", "0");
  }

  #onKey(event: KeyboardEvent): void {
    const buttons = this.#buttons;
    const { activeElement } = document;
    const at = activeElement instanceof HTMLButtonElement ? buttons.indexOf(activeElement) : -1;
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: buttons.length - 1,
    };
    const to = moves[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    buttons[Math.max(0, Math.min(buttons.length - 1, to))]?.focus();
  }
}
