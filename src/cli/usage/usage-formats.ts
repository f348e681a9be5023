/** Sums of a ledger as a table, CSV, JSON lines, Stripe's meter events and CloudEvents. */
import { type Grouping, identifierOf, NO_SUM, type UsageRow } from "../../ledger/usage-sums.ts";

export const FORMATS = ["table", "csv", "jsonl", "stripe", "cloudevents"] as const;
export type Format = (typeof FORMATS)[number];

export interface Written {
  readonly by: readonly Grouping[];
  /** What the sums are of, for those who take them in. */
  readonly meter: string;
  /** Rows are whole hours, and have identifiers. */
  readonly isExport: boolean;
}

export function write(format: Format, rows: readonly UsageRow[], written: Written): string {
  if (format === "table") return table(rows, written);
  if (format === "csv") return csv(rows, written);
  const lines = rows.flatMap((row): object[] => {
    if (format === "jsonl") return [fieldsOf(row, written)];
    if (format === "cloudevents") return [cloudEvent(row, written)];
    return isBillable(row) ? [stripeEvent(row, written)] : [];
  });
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** Stripe wants a customer, and takes no sums of nothing. */
export function isBillable({ characters, group }: UsageRow): boolean {
  return group.tenant !== "" && characters !== null && characters > 0;
}

function fieldsOf(row: UsageRow, { meter, isExport }: Written): Record<string, string | number | null> {
  return {
    ...(isExport ? { id: identifierOf(row, meter) } : {}),
    ...row.group,
    ...figuresOf(row),
  };
}

function figuresOf(row: UsageRow) {
  return {
    characters: row.characters,
    characters_counted: row.counted,
    requests: row.requests,
    requests_unknown: row.unknown,
    requests_cached: row.cached,
    audio_ms: row.audioMs,
    characters_heard: row.charactersHeard,
    heard_ms: row.heardMs,
  };
}

/** https://docs.stripe.com/api/billing/meter-event/create */
function stripeEvent(row: UsageRow, { meter }: Written) {
  const { tenant = "", hour = "" } = row.group;
  return {
    event_name: meter,
    identifier: identifierOf(row, meter),
    timestamp: Date.parse(hour) / 1000,
    payload: { stripe_customer_id: tenant, value: String(row.characters ?? 0) },
  };
}

/** https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md */
function cloudEvent(row: UsageRow, { meter }: Written) {
  const { tenant = "", hour = "", node = "", ...others } = row.group;
  return {
    specversion: "1.0",
    type: "com.voicewire.usage.v1",
    source: `/voicewire/${encodeURIComponent(node)}`,
    id: identifierOf(row, meter),
    time: hour,
    ...(tenant === "" ? {} : { subject: tenant }),
    datacontenttype: "application/json",
    data: { meter, tenant, hour, node, ...others, ...figuresOf(row) },
  };
}

/** RFC 4180. */
function csv(rows: readonly UsageRow[], written: Written): string {
  const names = [...(written.isExport ? ["id"] : []), ...written.by, ...Object.keys(figuresOf(NO_USAGE))];
  const lines = rows.map((row) => {
    const fields = fieldsOf(row, written);
    return names.map((name) => csvField(String(fields[name] ?? ""))).join(",");
  });
  return [names.join(","), ...lines].map((line) => `${line}\r\n`).join("");
}

/** A spreadsheet takes what begins with one of these for a formula, and names of voices come from clients. */
const FORMULA = /^[=+\-@\t\r]/;

function csvField(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const NO_USAGE: UsageRow = { group: {}, ...NO_SUM };

function table(rows: readonly UsageRow[], { by }: Written): string {
  const head = [...by, "characters", "counted", "requests", "unknown", "cached", "audio s", "heard s"];
  const lines = [
    head,
    ...rows.map((row) =>
      cells(
        row,
        by.map((grouping) => shown(row.group[grouping])),
      ),
    ),
  ];
  if (by.length > 0)
    lines.push(
      cells(
        totalOf(rows),
        by.map((_, index) => (index === 0 ? "total" : "")),
      ),
    );
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const aligned = (text: string, column: number): string =>
    column < by.length ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0);
  return lines.map((line) => `${line.map(aligned).join("  ").trimEnd()}\n`).join("");
}

function cells(row: UsageRow, names: readonly string[]): string[] {
  const { characters, counted } = row;
  const share = characters === null || characters === 0 ? 0 : (100 * counted) / characters;
  return [
    ...names,
    characters === null ? "unknown" : String(characters),
    counted > 0 && share < 1 ? "<1 %" : `${Math.round(share)} %`,
    String(row.requests),
    String(row.unknown),
    String(row.cached),
    (row.audioMs / 1000).toFixed(1),
    (row.heardMs / 1000).toFixed(1),
  ];
}

/** Names come from clients: no control characters reach the terminal. */
function shown(name = ""): string {
  return name === "" ? "-" : name.replaceAll(/[\p{Cc}\p{Cf}]/gu, "?");
}

function totalOf(rows: readonly UsageRow[]): UsageRow {
  const known = rows.filter(({ characters }) => characters !== null);
  const sum = (figure: (row: UsageRow) => number): number =>
    rows.reduce((total, row) => total + figure(row), 0);
  return {
    group: {},
    characters: known.length === 0 && rows.length > 0 ? null : sum(({ characters }) => characters ?? 0),
    counted: sum(({ counted }) => counted),
    requests: sum(({ requests }) => requests),
    unknown: sum(({ unknown }) => unknown),
    cached: sum(({ cached }) => cached),
    audioMs: sum(({ audioMs }) => audioMs),
    charactersHeard: sum(({ charactersHeard }) => charactersHeard),
    heardMs: sum(({ heardMs }) => heardMs),
  };
}
