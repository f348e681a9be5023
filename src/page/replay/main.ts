/** Shows a recorded session: a file is opened here, read here, and goes nowhere. */
import { type Course, courseOf, type Happening } from "../../recording/course.ts";
import { endSentence, type Recording, RecordingReader } from "../../recording/format.ts";
import { drawPicture, isTrouble } from "./picture.ts";

/** More lines would not be read by anybody, and would take the browser seconds. */
const MAX_ROWS = 5000;
/** What happened so shortly before the place is marked in the list, ms. */
const JUST_NOW_MS = 250;

function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new TypeError(`The page has no ${id}`);
  return found;
}

const drop = element("drop", HTMLDivElement);
const file = element("file", HTMLInputElement);
const trouble = element("trouble", HTMLParagraphElement);
const section = element("recording", HTMLElement);
const canvas = element("picture", HTMLCanvasElement);
const place = element("place", HTMLInputElement);
const zoom = element("zoom", HTMLSelectElement);
const list = element("list", HTMLDivElement);
const rows = element("happenings", HTMLTableSectionElement);

let course: Course | null = null;

async function read(opened: File): Promise<Recording> {
  const reader = new RecordingReader(null);
  const pieces = opened.stream().pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await pieces.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) reader.line(line);
  }
  return reader.done();
}

async function open(opened: File | undefined): Promise<void> {
  if (opened === undefined) return;
  trouble.hidden = true;
  section.hidden = true;
  try {
    show(await read(opened));
  } catch (thrown) {
    trouble.textContent = thrown instanceof Error ? thrown.message : String(thrown);
    trouble.hidden = false;
  }
}

function show(recording: Recording): void {
  const { head, end } = recording;
  course = courseOf(recording);
  const text = head.text === "hashed" ? ", without texts and audio" : "";
  element("facts", HTMLParagraphElement).textContent =
    `Session ${head.session} of ${head.at}, ${seconds(course.durationMs)}, voicewire ${head.version}${text}. ` +
    `Ended: ${endSentence(end)}.`;
  rows.replaceChildren(...course.happenings.slice(0, MAX_ROWS).map(rowOf));
  place.max = String(Math.ceil(course.durationMs));
  place.value = "0";
  // A short one is seen whole.
  zoom.value = course.durationMs < 20_000 ? "0" : "20000";
  section.hidden = false;
  draw();
  place.focus();
}

function rowOf(happening: Happening): HTMLTableRowElement {
  const row = document.createElement("tr");
  const { atMs, who, what, utterance } = happening;
  for (const text of [seconds(atMs), who, what, utterance ?? ""]) row.insertCell().textContent = text;
  row.classList.toggle("is-bad", isTrouble(happening));
  return row;
}

function draw(): void {
  if (course === null) return;
  const placeMs = Number(place.value);
  drawPicture(canvas, { course, placeMs, widthMs: Number(zoom.value) || course.durationMs });
  element("time", HTMLOutputElement).value = seconds(placeMs);
  place.setAttribute("aria-valuetext", seconds(placeMs));
  const word = course.words.find(({ startMs, endMs }) => startMs <= placeMs && placeMs < endMs);
  element("now", HTMLParagraphElement).textContent = word === undefined ? "Nothing is spoken" : word.text;
  markRows(course.happenings, placeMs);
}

function markRows(happenings: readonly Happening[], placeMs: number): void {
  let last: HTMLElement | undefined;
  for (const [index, row] of [...rows.rows].entries()) {
    const atMs = happenings[index]?.atMs ?? 0;
    const isNow = atMs <= placeMs && placeMs - atMs < JUST_NOW_MS;
    row.classList.toggle("is-now", isNow);
    if (isNow) last = row;
  }
  // The list alone moves: the page stays where its reader is.
  if (last !== undefined) list.scrollTop = last.offsetTop - list.clientHeight / 2;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`;
}

file.addEventListener("change", () => void open(file.files?.[0]));
place.addEventListener("input", draw);
zoom.addEventListener("change", draw);
addEventListener("resize", draw);
for (const type of ["dragenter", "dragover"]) {
  document.addEventListener(type, (event) => {
    event.preventDefault();
    drop.classList.add("is-over");
  });
}
document.addEventListener("dragleave", () => drop.classList.remove("is-over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("is-over");
  void open(event.dataTransfer?.files[0]);
});
