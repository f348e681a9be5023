/** The figures of docs/chaos.md, out of the last runs. */
import { listItem } from "../kit/list-item.ts";
import { type ChaosResults, renderTable } from "./report.ts";

/** What stands between the page's two marks. `faults`: what each does, for people. */
export function renderChaos(
  { machine, rows }: ChaosResults,
  faults: readonly { readonly name: string; readonly says: string }[],
): string {
  const shown = faults.filter(({ name }) => rows.some(({ fault }) => fault === name));
  return [
    renderTable(rows),
    "",
    ...shown.map(({ name, says }) => listItem(`\`${name}\`: ${says}.`)),
    "",
    "The machine, before the last of these runs:",
    "",
    ...machine.map((line) => listItem(line.replace(/\s+/g, " "))),
  ].join("\n");
}
