/** Draws the waterfall of the latest utterances as stacked bars, with the numbers as text beside them. */

import { formatMs, type Row, type SegmentRow, STAGES, scaleMs } from "../speech/waterfall.ts";
import { byId, make } from "./dom.ts";

const MAX_ROWS = 5;
/** Shorter than this, a piece was not ready early in any way that matters, ms. */
const MIN_SPARE_MS = 20;

export class WaterfallView {
  readonly #hint = byId("latency-hint", HTMLElement);
  readonly #legend = byId("legend", HTMLUListElement);
  readonly #bars = byId("bars", HTMLOListElement);
  #rows: { readonly row: Row; readonly segments: HTMLElement | null }[] = [];

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
    // The list of pieces is made once, so that one which is open stays open.
    const segments = row.segments.length === 0 ? null : renderSegments(row.segments);
    this.#rows = [{ row, segments }, ...this.#rows].slice(0, MAX_ROWS);
    const fullMs = scaleMs(this.#rows.map((entry) => entry.row));
    this.#hint.hidden = true;
    this.#legend.hidden = false;
    this.#bars.replaceChildren(...this.#rows.map((entry) => renderRow(entry.row, fullMs, entry.segments)));
  }
}

function renderRow(row: Row, fullMs: number, segments: HTMLElement | null): HTMLElement {
  const numbers = make("p", { class: "numbers" });
  for (const [index, stage] of STAGES.entries()) {
    const ms = row.stagesMs[index];
    if (ms == null) continue;
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
      renderHead(row.label, row.totalMs),
      renderBar(row.stagesMs, fullMs),
      numbers,
      ...(segments === null ? [] : [segments]),
    ],
  });
}

function renderSegments(segments: readonly SegmentRow[]): HTMLElement {
  const fullMs = Math.max(50, ...segments.map((segment) => segment.totalMs));
  const items = segments.map((segment) => {
    const spare =
      segment.spareMs < MIN_SPARE_MS
        ? []
        : [make("p", { class: "numbers", text: `ready ${formatMs(segment.spareMs)} before its turn` })];
    return make("li", {
      class: "row",
      children: [renderHead(segment.label, segment.totalMs), renderBar(segment.stagesMs, fullMs), ...spare],
    });
  });
  return make("details", {
    class: "segments",
    children: [
      make("summary", { text: `Spoken in ${segments.length} pieces` }),
      make("ol", { class: "bars", children: items }),
    ],
  });
}

function renderHead(label: string, totalMs: number): HTMLElement {
  return make("p", {
    class: "row-head",
    children: [make("bdi", { text: label }), make("b", { text: formatMs(totalMs) })],
  });
}

function renderBar(stagesMs: readonly (number | null)[], fullMs: number): HTMLElement {
  const bar = make("div", { class: "bar", attributes: { "aria-hidden": "true" } });
  for (const [index, stage] of STAGES.entries()) {
    const ms = stagesMs[index];
    if (ms == null || ms === 0) continue;
    const part = make("span", {
      class: `part stage-${stage.key}`,
      attributes: { title: `${stage.name} ${formatMs(ms)}` },
    });
    // Set as a property: a strict style-src forbids style attributes in markup, not this.
    part.style.width = `${Math.min(100, (ms / fullMs) * 100)}%`;
    bar.append(part);
  }
  return bar;
}
