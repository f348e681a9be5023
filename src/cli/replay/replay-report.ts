/** A recorded session as text: what it was, whether it ran again alike, and a table of its utterances. */
import type { Course, CourseUtterance, Happening, Silence } from "../../recording/course.ts";
import { endSentence, type Recording } from "../../recording/format.ts";
import type { Difference, Replayed } from "../../recording/player.ts";
import { safeText } from "../output/terminal-text.ts";

export interface Told {
  readonly recording: Recording;
  readonly course: Course;
  /** null: it could not be run. */
  readonly replayed: Replayed | null;
  /** How long that took. */
  readonly ms: number;
}

/** Names and texts are of clients: no control characters reach the terminal. */
export function report(told: Told): string {
  const { course } = told;
  const lines = [
    ...headLines(told),
    "",
    ...table(
      ["connection", "id", "role", "format", "joined", "left", "messages", "frames", "ended"],
      course.connections.map(({ number, id, role, format, joinedMs, leftMs, deliveries, ended }) => [
        String(number),
        id ?? "-",
        role,
        format,
        seconds(joinedMs),
        seconds(leftMs),
        String(deliveries.length),
        String(deliveries.reduce((sum, { frames }) => sum + frames, 0)),
        ended ?? "-",
      ]),
    ),
    "",
    ...table(
      ["utterance", "asked", "first bytes", "first frame", "over", "outcome", "cut", "heard", "dry"],
      course.utterances.map((utterance) => utteranceRow(utterance, told)),
    ),
    "",
    ...dryLines(told),
  ];
  return safeText(lines.join("\n"));
}

/** Speech that had begun, and had nothing more to play. */
export interface DryMoment {
  readonly atMs: number;
  /** The utterance that was spoken; null: none. */
  readonly utterance: string | null;
  /** The answer that it waited for; null: it waited for none. */
  readonly silence: Silence | null;
}

export function dryMoments({ course, replayed }: Pick<Told, "course" | "replayed">): readonly DryMoment[] {
  return (replayed?.underrunsMs ?? []).map((atMs) => {
    const spoken = course.utterances.filter(
      ({ askedMs, doneMs }) => askedMs <= atMs && atMs <= (doneMs ?? Number.POSITIVE_INFINITY),
    );
    const holds = ({ fromMs, untilMs }: Silence): boolean => fromMs <= atMs && atMs <= untilMs;
    const silence = course.silences.find(
      (one) => holds(one) && spoken.some(({ id }) => id === one.utterance),
    );
    return { atMs, utterance: silence?.utterance ?? spoken[0]?.id ?? null, silence: silence ?? null };
  });
}

/** More than these are counted. */
const MAX_DRY_LINES = 20;

function dryLines(told: Told): string[] {
  const moments = dryMoments(told);
  if (moments.length === 0) return [];
  const lines = moments.slice(0, MAX_DRY_LINES).map(({ atMs, utterance, silence }) => {
    const dry = `${utterance ?? "Speech"} ran dry at ${seconds(atMs)}`;
    if (silence === null) return `${dry}. Its upstream was not silent then.`;
    const { request, fromMs, untilMs } = silence;
    const waited = `request ${request} brought nothing from ${seconds(fromMs)} to ${seconds(untilMs)}`;
    return `${dry}: ${waited}.`;
  });
  const more = moments.length - lines.length;
  return [...lines, ...(more > 0 ? [`And ${more} times more.`] : []), ""];
}

function headLines({ recording: { head, end }, course, replayed, ms }: Told): string[] {
  const lines = [
    `Session ${head.session} of ${head.at}, ${seconds(course.durationMs)}, voicewire ${head.version}`,
    `Recording ended (${end ?? "killed"}): ${endSentence(end)}.`,
  ];
  if (replayed === null) return [...lines, "Not run: the recording has hashes in place of texts and audio"];
  const { difference, messages, entries } = replayed;
  if (difference === null) {
    return [...lines, `Byte-exact: ${messages} messages of ${entries} entries, in ${seconds(ms)}`];
  }
  return [...lines, ...differenceLines(difference)];
}

function differenceLines(difference: Difference): string[] {
  const { line, atMs, what, connection, message, field, recorded, replayed } = difference;
  const to = connection === null ? "" : `, connection ${connection}, message ${message}`;
  return [
    `First difference: line ${line}, ${seconds(atMs)}${to}, ${what}: ${field}`,
    `  recorded: ${recorded}`,
    `  replayed: ${replayed}`,
  ];
}

function utteranceRow(utterance: CourseUtterance, { replayed }: Told): string[] {
  const { id, askedMs, firstByteMs, firstFrameMs, doneMs, outcome, error, interrupts, heard } = utterance;
  const since = (atMs: number | null): string => (atMs === null ? "-" : `+${seconds(atMs - askedMs)}`);
  const dry = replayed?.underrunsMs.filter(
    (atMs) => atMs >= askedMs && atMs <= (doneMs ?? Number.POSITIVE_INFINITY),
  );
  return [
    id,
    seconds(askedMs),
    since(firstByteMs),
    since(firstFrameMs),
    since(doneMs),
    error === null ? (outcome ?? "-") : `${outcome} (${error})`,
    interrupts === 0 ? "-" : String(interrupts),
    heard === null ? "-" : `${seconds(heard.ms)} (${heard.source})`,
    dry === undefined ? "?" : String(dry.length),
  ];
}

/** One line each. */
export function eventLines({ happenings }: Course): string {
  const rows = happenings.map(({ atMs, kind, who, what, utterance }: Happening) => [
    seconds(atMs),
    kind,
    who === "" ? "-" : who,
    what,
    utterance === null ? "" : utterance,
  ]);
  return safeText(`${table(["time", "kind", "who", "what", "utterance"], rows).join("\n")}\n`);
}

function seconds(ms: number | null): string {
  return ms === null ? "-" : `${(ms / 1000).toFixed(3)} s`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)));
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
