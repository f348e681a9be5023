/**
 * What happened in a recorded session, for people: who asked for what and when, what was heard of it, who got what. Read from the
 * recording alone, nothing is run again. Browsers run this, too.
 *
 * Audio and words have places on the timeline; here they are put at the time at which they were played: a stretch of speech plays on from the
 * moment in which its first event left.
 */
import type { Entry, Recording } from "./format.ts";
import { isList, type Json } from "./json.ts";

export interface Course {
  readonly durationMs: number;
  readonly connections: readonly CourseConnection[];
  readonly utterances: readonly CourseUtterance[];
  /** While a request was open. The gateway may have left the answer unread for as long: speech that ran dry then waited for it. */
  readonly silences: readonly Silence[];
  /** In the order in which they happened. */
  readonly happenings: readonly Happening[];
  /** As they were played. */
  readonly words: readonly CourseWord[];
  /** How loud the audio was, in pieces. */
  readonly wave: readonly WavePiece[];
}

export interface CourseConnection {
  readonly number: number;
  /** As receipts and presence name it; null: it was refused. */
  id: string | null;
  readonly role: string;
  readonly format: string;
  readonly joinedMs: number;
  leftMs: number | null;
  /** Why it was ended; null: it was not. */
  ended: string | null;
  readonly deliveries: CourseDelivery[];
}

export interface CourseDelivery {
  readonly atMs: number;
  readonly frames: number;
  readonly bytes: number;
  readonly events: number;
  /** It was not taken at once. */
  readonly isLate: boolean;
}

export interface CourseUtterance {
  readonly id: string;
  readonly askedMs: number;
  /** null where it is not in the recording. */
  text: string | null;
  firstByteMs: number | null;
  firstFrameMs: number | null;
  doneMs: number | null;
  outcome: string | null;
  /** Its error's code. */
  error: string | null;
  /** What was heard where it was cut. */
  heard: { readonly ms: number; readonly source: string; readonly boundMs: number } | null;
  interrupts: number;
}

/** Nothing came of an answer for a while, or of all of it yet. */
export interface Silence {
  readonly utterance: string;
  readonly request: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Happening {
  readonly atMs: number;
  readonly kind: "command" | "event" | "request" | "connection" | "refused";
  /** A connection's id, or the upstream. */
  readonly who: string;
  readonly what: string;
  readonly utterance: string | null;
}

export interface CourseWord {
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
}

export interface WavePiece {
  readonly atMs: number;
  /** One each 20 ms, 0 to 255. */
  readonly peaks: readonly number[];
}

type Fields = Readonly<Record<string, Json>>;

/** A shorter one is none, ms. */
const MIN_SILENCE_MS = 100;

/** Events that would fill a list and say little: words and characters are shown otherwise. */
const QUIET: ReadonlySet<string> = new Set(["words", "characters", "normalized", "viseme", "segment", "cue"]);

export function courseOf(recording: Pick<Recording, "head" | "entries">): Course {
  const reader = new CourseReader(recording.head.at_ms);
  for (const entry of recording.entries) reader.read(entry);
  return reader.course();
}

interface Stretch {
  readonly fromMs: number;
  readonly offsetMs: number;
}

class CourseReader {
  readonly #startMs: number;
  readonly #connections = new Map<number, CourseConnection>();
  readonly #utterances = new Map<string, CourseUtterance>();
  readonly #happenings: Happening[] = [];
  readonly #requests = new Map<string, string>();
  /** When each open request was asked, or its last piece came. */
  readonly #lastHeardMs = new Map<string, number>();
  readonly #silences: Silence[] = [];
  /** Utterances that have begun. */
  readonly #started = new Set<string>();
  readonly #stretches: Stretch[] = [];
  #words: CourseWord[] = [];
  #wave: WavePiece[] = [];
  #nowMs = 0;
  /** The connection that is joining now; null: none is. */
  #joining: CourseConnection | null = null;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  course(): Course {
    const placed = <T extends object>(pieces: readonly T[], move: (piece: T) => T): readonly T[] =>
      pieces.map(move);
    return {
      durationMs: this.#nowMs,
      connections: [...this.#connections.values()],
      utterances: [...this.#utterances.values()],
      silences: this.#silences,
      happenings: this.#happenings,
      words: placed(this.#words, (word) => ({
        ...word,
        startMs: this.#playedMs(word.startMs),
        endMs: this.#playedMs(word.startMs) + word.endMs - word.startMs,
      })),
      wave: placed(this.#wave, (piece) => ({ ...piece, atMs: this.#playedMs(piece.atMs) })),
    };
  }

  read({ atMs, name, says, items, error }: Entry): void {
    this.#nowMs = Math.max(this.#nowMs, atMs - this.#startMs);
    this.#entry({ name, says, items, error });
  }

  #entry({ name, says, items, error }: Pick<Entry, "name" | "says" | "items" | "error">): void {
    this.#called(name, says);
    for (const item of items) this.#item(item);
    if (error === null) return;
    if (this.#joining !== null && name === "join") this.#joining.ended = error;
    const [who] = says;
    this.#note("refused", typeof who === "string" ? who : "", `${name}: ${error}`);
  }

  #called(name: string, says: readonly Json[]): void {
    const [first, second] = says;
    const [kind = "", request = ""] = (name.split("#")[0] ?? "").split("/");
    switch (kind) {
      case "join":
        this.#joined(first, fieldsOf(second));
        return;
      case "leave":
        this.#left(textOf(first));
        return;
      case "command":
        this.#command(textOf(first), fieldsOf(second));
        return;
      case "speak":
        this.#note("command", "http", "speak");
        return;
      case "interrupt":
        this.#note("command", "http", "interrupt", textOf(first));
        return;
      case "restore":
        this.#note("event", "", "goes on here: another node had the session before");
        return;
      case "close":
        this.#note("event", "", `session closed: ${textOf(fieldsOf(first).code)}`);
        return;
      case "sent":
      case "turnedAway":
      case "end":
        if (request === "") return;
        this.#heardOf(request, kind === "sent");
        this.#note("request", "upstream", `request ${request}: ${kind}`, this.#requests.get(request));
        return;
      case "chunk":
        this.#chunk(request);
        return;
      case "error":
        this.#heardOf(request, false);
        this.#note(
          "request",
          "upstream",
          `request ${request}: ${textOf(fieldsOf(first).code)}`,
          this.#requests.get(request),
        );
        return;
    }
  }

  #joined(number: Json | undefined, joining: Fields): void {
    const settings = fieldsOf(joining.settings);
    const connection: CourseConnection = {
      number: numberOf(number),
      id: null,
      role: textOf(settings.role),
      format: textOf(settings.format),
      joinedMs: this.#nowMs,
      leftMs: null,
      ended: null,
      deliveries: [],
    };
    this.#joining = connection;
    this.#connections.set(connection.number, connection);
  }

  #left(id: string): void {
    for (const connection of this.#connections.values()) {
      if (connection.id === id) connection.leftMs ??= this.#nowMs;
    }
    this.#note("connection", id, "left");
  }

  #command(who: string, command: Fields): void {
    const type = textOf(command.type);
    // Tokens of a text come by the hundred.
    const isQuiet = type === "text" || type === "played" || type === "ping";
    if (!isQuiet) this.#note("command", who, type, textOf(command.utterance_id));
  }

  #item(item: Json): void {
    if (item === null || typeof item !== "object") return;
    if (!isList(item)) {
      const [name, says, items, error] = listOf(item.in);
      this.#entry({
        name: textOf(name),
        says: listOf(says),
        items: listOf(items),
        error: typeof error === "string" ? error : null,
      });
      return;
    }
    const [name, said, answer] = item;
    const says = listOf(said);
    switch (name) {
      case "notify":
        this.#event(fieldsOf(says[1]), this.#connections.get(numberOf(says[0])));
        return;
      case "deliver":
        this.#delivered(says, answer);
        return;
      case "end": {
        const connection = this.#connections.get(numberOf(says[0]));
        if (connection !== undefined) connection.ended ??= textOf(says[2]);
        this.#note("connection", connection?.id ?? "", `ended: ${textOf(says[2])}`);
        return;
      }
      case "ask":
        this.#asked(String(numberOf(says[0])), fieldsOf(says[1]));
        return;
      case "wave":
        if (says.length === 2)
          this.#wave.push({ atMs: numberOf(says[0]), peaks: listOf(says[1]).map(numberOf) });
        return;
    }
  }

  #asked(request: string, asked: Fields): void {
    const id = textOf(fieldsOf(asked.utterance).id);
    this.#requests.set(request, id);
    const utterance = this.#utterances.get(id);
    if (utterance !== undefined && typeof asked.text === "string") {
      utterance.text = `${utterance.text ?? ""}${utterance.text === null ? "" : " "}${asked.text.trim()}`;
    }
    this.#lastHeardMs.set(request, this.#nowMs);
    this.#note("request", "upstream", `request ${request}: asked`, id);
  }

  /** `isOpen`: more of its answer may come. */
  #heardOf(request: string, isOpen: boolean): void {
    const fromMs = this.#lastHeardMs.get(request) ?? this.#nowMs;
    const utterance = this.#requests.get(request) ?? "";
    const untilMs = this.#nowMs;
    if (untilMs - fromMs >= MIN_SILENCE_MS) this.#silences.push({ utterance, request, fromMs, untilMs });
    if (isOpen) this.#lastHeardMs.set(request, untilMs);
    else this.#lastHeardMs.delete(request);
  }

  #chunk(request: string): void {
    this.#heardOf(request, true);
    const id = this.#requests.get(request) ?? "";
    const utterance = this.#utterances.get(id);
    if (utterance === undefined || utterance.firstByteMs !== null) return;
    utterance.firstByteMs = this.#nowMs;
    this.#note("request", "upstream", `request ${request}: first bytes`, id);
  }

  #delivered(says: readonly Json[], answer: Json | undefined): void {
    const [number, frames, bytes, seqs, , events] = says;
    const connection = this.#connections.get(numberOf(number));
    for (const json of listOf(events)) this.#event(eventIn(json), undefined);
    connection?.deliveries.push({
      atMs: this.#nowMs,
      frames: numberOf(frames),
      bytes: numberOf(bytes),
      events: listOf(seqs).length,
      isLate: answer !== undefined,
    });
    if (numberOf(frames) === 0) return;
    for (const utterance of this.#utterances.values()) {
      const isPlaying = utterance.firstByteMs !== null && utterance.doneMs === null;
      if (isPlaying && utterance.firstFrameMs === null && this.#started.has(utterance.id))
        utterance.firstFrameMs = this.#nowMs;
    }
  }

  #event(event: Fields, to: CourseConnection | undefined): void {
    const type = textOf(event.type);
    const id = textOf(event.utterance_id);
    switch (type) {
      case "hello":
        if (to !== undefined) to.id = textOf(event.listener_id);
        this.#note("connection", textOf(event.listener_id), event.resumed === true ? "came back" : "joined");
        return;
      case "utterance.queued":
        this.#utteranceOf(id);
        break;
      case "utterance.started":
      case "utterance.resumed":
        this.#utteranceOf(id).firstByteMs ??= this.#nowMs;
        this.#started.add(id);
        this.#stretches.push({
          fromMs: numberOf(event.start_ms),
          offsetMs: this.#nowMs - numberOf(event.start_ms),
        });
        break;
      case "utterance.done": {
        const utterance = this.#utteranceOf(id);
        utterance.doneMs = this.#nowMs;
        utterance.outcome = textOf(event.outcome);
        if (event.error !== undefined) utterance.error = textOf(fieldsOf(event.error).code);
        break;
      }
      case "interrupted":
        this.#interrupted(this.#utteranceOf(id), event);
        break;
      case "words":
        for (const word of listOf(event.words).map(fieldsOf)) {
          this.#words.push({
            text: typeof word.text === "string" ? word.text : "",
            startMs: numberOf(word.start_ms),
            endMs: numberOf(word.end_ms),
          });
        }
        return;
    }
    if (!QUIET.has(type) && type !== "") this.#note("event", to?.id ?? "", type, id);
  }

  #interrupted(utterance: CourseUtterance, event: Fields): void {
    const heard = fieldsOf(event.heard);
    utterance.interrupts += 1;
    utterance.heard = {
      ms: numberOf(heard.ms),
      source: textOf(heard.source),
      boundMs: numberOf(heard.bound_ms),
    };
    if (typeof event.next_ms !== "number") return;
    const cutMs = event.next_ms;
    this.#words = this.#words.filter(({ startMs }) => startMs < cutMs);
    this.#wave = this.#wave.filter(({ atMs }) => atMs < cutMs);
  }

  #utteranceOf(id: string): CourseUtterance {
    const known = this.#utterances.get(id);
    if (known !== undefined) return known;
    const utterance: CourseUtterance = {
      id,
      askedMs: this.#nowMs,
      text: null,
      firstByteMs: null,
      firstFrameMs: null,
      doneMs: null,
      outcome: null,
      error: null,
      heard: null,
      interrupts: 0,
    };
    this.#utterances.set(id, utterance);
    return utterance;
  }

  #playedMs(placeMs: number): number {
    const stretch = this.#stretches.findLast(({ fromMs }) => fromMs <= placeMs + 1) ?? this.#stretches[0];
    return placeMs + (stretch?.offsetMs ?? 0);
  }

  #note(kind: Happening["kind"], who: string, what: string, utterance = ""): void {
    this.#happenings.push({
      atMs: this.#nowMs,
      kind,
      who,
      what,
      utterance: utterance === "" ? null : utterance,
    });
  }
}

function listOf(json: Json | undefined): readonly Json[] {
  return json !== undefined && isList(json) ? json : [];
}

function fieldsOf(json: Json | undefined): Fields {
  return json !== undefined && json !== null && typeof json === "object" && !isList(json) ? json : {};
}

function textOf(json: Json | undefined): string {
  return typeof json === "string" ? json : "";
}

function numberOf(json: Json | undefined): number {
  return typeof json === "number" ? json : 0;
}

function eventIn(json: Json): Fields {
  try {
    return typeof json === "string" ? fieldsOf(JSON.parse(json) as Json) : {};
  } catch {
    return {};
  }
}
