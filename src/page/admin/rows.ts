/** Rows of a table, or items of a list, that follow what is to be shown: only what has changed is written. */
import { make } from "../view/dom.ts";

export interface Cell {
  readonly text: string;
  /** How it stands out. */
  readonly look?: "late" | "quiet" | undefined;
}

export interface Column<T> {
  readonly head: string;
  readonly isNumber?: boolean;
  /** Left out where there is little room, or already where there is less than plenty. */
  readonly isLeftOut?: "detail" | "minor";
  cell(row: T): Cell;
}

/** Heads once; rows by their keys. The first column is the row's name. */
export class Rows<T> {
  readonly #body: HTMLElement;
  readonly #columns: readonly Column<T>[];
  readonly #keyOf: (row: T) => string;
  readonly #byKey = new Map<string, HTMLTableRowElement>();

  constructor(
    places: { readonly heads: HTMLElement; readonly body: HTMLElement },
    columns: readonly Column<T>[],
    keyOf: (row: T) => string,
  ) {
    this.#body = places.body;
    this.#columns = columns;
    this.#keyOf = keyOf;
    places.heads.append(
      ...columns.map((column) =>
        make("th", { text: column.head, class: classOf(column), attributes: { scope: "col" } }),
      ),
    );
  }

  /** In this order. `isHeld`: rows that are there keep their places, so that none moves away under a hand. */
  show(rows: readonly T[], isHeld = false): void {
    const keys = new Set(rows.map(this.#keyOf));
    for (const [key, element] of this.#byKey) {
      if (keys.has(key)) continue;
      element.remove();
      this.#byKey.delete(key);
    }
    rows.forEach((row, index) => {
      const key = this.#keyOf(row);
      const known = this.#byKey.get(key);
      const element = known ?? this.#make(key);
      this.#write(element, row);
      const here = this.#body.children.item(index);
      if (here === element || (isHeld && known !== undefined)) return;
      this.#body.insertBefore(element, isHeld ? null : here);
    });
  }

  #make(key: string): HTMLTableRowElement {
    const element = make("tr", { attributes: { "data-key": key } });
    this.#columns.forEach((column, index) => {
      const attributes: Record<string, string> = index === 0 ? { scope: "row" } : {};
      element.append(make(index === 0 ? "th" : "td", { class: classOf(column), attributes }));
    });
    this.#byKey.set(key, element);
    return element;
  }

  #write(element: HTMLTableRowElement, row: T): void {
    this.#columns.forEach((column, index) => {
      const place = element.cells.item(index);
      if (place === null) return;
      const { text, look = "" } = column.cell(row);
      const target = place.firstElementChild ?? place;
      if (target.textContent !== text) target.textContent = text;
      if ((place.dataset.look ?? "") !== look) place.dataset.look = look;
    });
  }
}

function classOf({
  isNumber = false,
  isLeftOut = "",
}: Pick<Column<never>, "isNumber"> & { readonly isLeftOut?: string }): string {
  return [isNumber ? "number" : "", isLeftOut].filter((name) => name !== "").join(" ");
}
