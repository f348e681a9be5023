/** Draws the waterfall of the latest utterances as stacked bars, with the numbers as text beside them. */
import { byId, make } from "./dom.ts";
import { formatMs, type Row, STAGES, scaleMs } from "./waterfall.ts";

const MAX_ROWS = 5;

export class WaterfallView {
  readonly #hint = byId("latency-hint", HTMLElement);
  readonly #legend = byId("legend", HTMLUListElement);
  readonly #bars = byId("bars", HTMLOListElement);
  #rows: Row[] = [];

  constructor() {
    this.#legend.replaceChildren(
      ...STAGES.map((stage) =>
        make("li", {
          attributes: { title: stage.about },
          children: [make("i", { class: `swatch stage-${stage.key}` }), stage.name],
        }),
      ),
    );
  }

  /** The newest on top. */
  add(row: Row): void {
    this.#rows = [row, ...this.#rows].slice(0, MAX_ROWS);
    const fullMs = scaleMs(this.#rows);
    this.#hint.hidden = true;
    this.#legend.hidden = false;
    this.#bars.replaceChildren(...this.#rows.map((entry) => renderRow(entry, fullMs)));
  }
}

function renderRow(row: Row, fullMs: number): HTMLElement {
  const bar = make("div", { class: "bar", attributes: { "aria-hidden": "true" } });
  const numbers = make("p", { class: "numbers" });
  for (const [index, stage] of STAGES.entries()) {
    const ms = row.stagesMs[index];
    if (ms == null) continue;
    const part = make("span", {
      class: `part stage-${stage.key}`,
      attributes: { title: `${stage.name} ${formatMs(ms)}` },
    });
    // Set as a property: a strict style-src forbids style attributes in markup, not this.
    part.style.width = `${Math.min(100, (ms / fullMs) * 100)}%`;
    bar.append(part);
    numbers.append(make("span", { children: [`${stage.name} `, make("b", { text: formatMs(ms) })] }), " ");
  }
  const notes = [
    row.ahead > 0 ? `waited behind ${row.ahead} other${row.ahead === 1 ? "" : "s"}` : "",
    row.leadingSilenceMs === null || row.leadingSilenceMs < 1
      ? ""
      : `then ${formatMs(row.leadingSilenceMs)} of silence in the voice`,
  ].filter((note) => note !== "");
  if (notes.length > 0) numbers.append(make("span", { class: "note", text: notes.join("; ") }));
  return make("li", {
    class: row.ahead > 0 ? "row waited" : "row",
    children: [
      make("p", {
        class: "row-head",
        children: [make("bdi", { text: row.label }), make("b", { text: formatMs(row.totalMs) })],
      }),
      bar,
      numbers,
    ],
  });
}
