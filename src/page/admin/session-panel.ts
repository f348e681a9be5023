/** One session, opened: its timeline as it runs, its listeners and its utterances. */
import type { LiveListener, LiveUtterance, OpenedSession } from "../../protocol/live-view.ts";
import { TimelineDrawing, timelineHeight } from "../timeline/timeline-drawing.ts";
import { byId, make } from "../view/dom.ts";
import { count, LATE_MS, shortBytes, shortMs, shortTime } from "./figures.ts";
import { type Column, Rows } from "./rows.ts";
import { SessionScene } from "./session-scene.ts";

const SURFACES: Readonly<Record<LiveListener["surface"], string>> = {
  socket: "Socket",
  audio: "Audio over HTTP",
  captions: "Captions",
  call: "Phone call",
  "other node": "At another node or worker",
};

const LISTENERS: readonly Column<LiveListener>[] = [
  { head: "Listener", cell: ({ id }) => ({ text: id }) },
  { head: "By", cell: ({ surface }) => ({ text: SURFACES[surface] }) },
  {
    head: "Format",
    cell: ({ format, policy }) => ({ text: format === "none" ? "events" : `${format}, ${policy}` }),
  },
  {
    head: "Lag",
    isNumber: true,
    cell: ({ lag_ms, lag_by }) => ({
      text: lag_by === "ack" ? `${shortMs(lag_ms)} (says so)` : shortMs(lag_ms),
      look: lag_ms >= LATE_MS ? "late" : undefined,
    }),
  },
  { head: "Waits", isNumber: true, cell: ({ queue_bytes }) => ({ text: shortBytes(queue_bytes) }) },
  {
    head: "Dropped",
    isNumber: true,
    cell: ({ dropped_frames }) => ({
      text: count(dropped_frames),
      look: dropped_frames > 0 ? "late" : "quiet",
    }),
  },
  {
    head: "Acknowledged",
    isNumber: true,
    cell: ({ acknowledged_ms_ago: ms }) => ({
      text: ms === null ? "never" : `${shortMs(ms)} ago`,
      look: "quiet",
    }),
  },
  {
    head: "Round trip",
    isNumber: true,
    cell: ({ round_trip_ms: ms }) => ({ text: ms === null ? "–" : `${ms.toFixed(ms < 10 ? 1 : 0)} ms` }),
  },
];

const seconds = (ms: number | null): string => (ms === null ? "–" : `${(ms / 1000).toFixed(2)} s`);

const UTTERANCES: readonly Column<LiveUtterance>[] = [
  { head: "Utterance", cell: ({ id }) => ({ text: id }) },
  {
    head: "State",
    cell: ({ state }) => ({
      text: state === "played" ? "made" : state,
      look: state === "failed" ? "late" : undefined,
    }),
  },
  { head: "From", isNumber: true, cell: ({ start_ms }) => ({ text: seconds(start_ms) }) },
  { head: "To", isNumber: true, cell: ({ end_ms }) => ({ text: seconds(end_ms) }) },
  { head: "Segments", isNumber: true, cell: ({ segments }) => ({ text: count(segments.length) }) },
  { head: "Characters", isNumber: true, cell: ({ characters }) => ({ text: count(characters) }) },
];

const STATES = { speaking: "Speaking", waiting: "Waiting", idle: "Idle" } as const;

export class SessionPanel {
  readonly #canvas = byId("timeline", HTMLCanvasElement);
  readonly #drawing = new TimelineDrawing(this.#canvas);
  readonly #listeners = new Rows<LiveListener>(
    { heads: byId("listener-heads", HTMLElement), body: byId("listener-rows", HTMLElement) },
    LISTENERS,
    ({ id }) => id,
  );
  readonly #utterances = new Rows<LiveUtterance>(
    { heads: byId("utterance-heads", HTMLElement), body: byId("utterance-rows", HTMLElement) },
    UTTERANCES,
    ({ id }) => id,
  );
  readonly #section = byId("opened", HTMLElement);
  #scene = new SessionScene();
  #name = "";

  get name(): string {
    return this.#name;
  }

  open(name: string): void {
    this.#name = name;
    this.#scene = new SessionScene();
    byId("opened-title", HTMLElement).textContent = name;
    byId("opened-state", HTMLElement).textContent = "";
    byId("opened-gone", HTMLElement).hidden = true;
    this.#listeners.show([]);
    this.#utterances.show([]);
    byId("opened-facts", HTMLElement).replaceChildren();
    this.#section.hidden = false;
    byId("opened-title", HTMLElement).focus();
    this.#moveOn();
  }

  close(): void {
    this.#name = "";
    this.#section.hidden = true;
  }

  /** null: it is over, or may not be seen. */
  show(opened: OpenedSession | null): void {
    byId("opened-gone", HTMLElement).hidden = opened !== null;
    byId("opened-body", HTMLElement).hidden = opened === null;
    if (opened === null) {
      byId("opened-state", HTMLElement).textContent = "";
      return;
    }
    this.#scene.report(opened, performance.now());
    const { session, listeners, utterances } = opened;
    byId("opened-state", HTMLElement).textContent = STATES[session.state];
    byId("text-note", HTMLElement).hidden = opened.shows_text;
    byId("listener-count", HTMLElement).textContent = count(session.listeners);
    this.#listeners.show(listeners);
    this.#utterances.show(utterances);
    byId("no-utterances", HTMLElement).hidden = utterances.length > 0;
    const lanes = listeners.filter(({ format }) => format !== "none").length;
    this.#canvas.style.blockSize = `${timelineHeight(lanes)}px`;
    this.#showFacts(opened);
  }

  #showFacts({ session, playhead_ms, made_ms }: OpenedSession): void {
    const facts: readonly (readonly [string, string, boolean?])[] = [
      ["Playhead", seconds(playhead_ms)],
      ["Made ahead", shortMs(Math.max(0, made_ms - playhead_ms))],
      ["Worst lag", shortMs(session.lag_ms), session.lag_ms >= LATE_MS],
      ["Underruns", count(session.underruns), session.underruns > 0],
      ["Cut", count(session.interrupts)],
      ["Speakers", count(session.speakers)],
      ["Open for", shortTime(session.age_s)],
      ["At", session.node],
      ...(session.tenant === "" ? [] : [["Tenant", session.tenant] as const]),
    ];
    byId("opened-facts", HTMLElement).replaceChildren(
      ...facts.map(([name, value, isLate = false]) =>
        make("div", {
          children: [
            make("dt", { text: name }),
            make("dd", { text: value, attributes: isLate ? { "data-look": "late" } : {} }),
          ],
        }),
      ),
    );
  }

  /** With each picture of the screen, as long as it is open. */
  #moveOn(): void {
    const scene = this.#scene;
    const draw = (): void => {
      if (this.#scene !== scene || this.#name === "") return;
      this.#drawing.draw(scene.at(performance.now()));
      requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw);
  }
}
