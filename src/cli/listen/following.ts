/** One run of `voicewire listen`: shows and writes what a connection brings, and says what was missed. */
import type { Connection, ReconnectedEvent, ReconnectingEvent } from "../../client/index.ts";
import { recovered } from "../../client/recovery.ts";
import type { CharactersEvent, GapEvent, WarningEvent } from "../../protocol/events.ts";
import { type Io, mayStyle } from "../io.ts";
import { KaraokeView, PlainView, type SpeechView } from "../output/karaoke.ts";
import type { Outputs } from "../output/outputs.ts";
import { ReceivedSpeech } from "../output/received-speech.ts";
import type { FedText } from "../say/text-feeder.ts";
import type { ListenPlan } from "./listen-plan.ts";

export interface FollowingOptions {
  readonly io: Io;
  readonly plan: ListenPlan;
  /** Just joined. */
  readonly connection: Connection;
  readonly outputs: Outputs;
}

export class Following {
  readonly #options: FollowingOptions;
  readonly #speech: ReceivedSpeech;
  readonly #lines = new Lines();
  readonly #spelled = new Spelled();
  /** Said when the connection was joined again: the `gap` that follows would say it once more. */
  #saidMs = 0;

  constructor(options: FollowingOptions) {
    const { io, plan, connection, outputs } = options;
    this.#options = options;
    const { resume } = plan;
    const isSameTimeline = connection.hello.resumed === true;
    const startMs = connection.audio?.start_ms ?? 0;
    const fromMs = isSameTimeline ? resume?.atMs : undefined;
    this.#speech = new ReceivedSpeech({
      io,
      connection,
      outputs,
      view: viewOf(io, plan),
      leadMs: connection.hello.settings.lead_ms,
      fromMs,
    });
    if (resume !== undefined) this.#sayRejoined(isSameTimeline ? startMs - (fromMs ?? startMs) : null);
  }

  /** To be called in the turn that the connection was joined in. */
  start(): void {
    const { plan, connection } = this.#options;
    if (plan.isJson) {
      this.#print(connection.hello);
      connection.onEvent((event) => this.#print(event));
    }
    connection.on("segment", (event) => {
      if (this.#lines.isNew(event.utterance_id, event.dialogue_input_index)) this.#breakLine();
    });
    connection.on("characters", (event) => this.#characters(event));
    connection.on("gap", (event) => this.#gap(event));
    connection.on("utterance.started", ({ utterance_id }) => this.#spelled.begin(utterance_id));
    connection.on("utterance.resumed", ({ utterance_id }) => this.#spelled.begin(utterance_id));
    connection.on("warning", (event) => this.#warning(event));
    connection.on("reconnecting", (event) => this.#reconnecting(event));
    connection.on("reconnected", (event) => this.#reconnected(event));
    this.#speech.start();
  }

  /** Leaves what was said on the screen. Idempotent. */
  stop(): void {
    this.#speech.stop();
    this.#speech.endFiles();
  }

  #characters(event: CharactersEvent): void {
    if (this.#lines.isNew(event.utterance_id)) this.#breakLine();
    const spelled = {
      utteranceId: event.utterance_id,
      start: event.start,
      text: event.characters.join(""),
    };
    const piece = this.#spelled.newOf(spelled);
    this.#speech.script.append(piece.text, piece);
  }

  #warning(event: WarningEvent): void {
    const again = recovered(event);
    if (again !== null) this.#spelled.recovered(again.utterance_id);
    this.#say(event.message);
  }

  #breakLine(): void {
    const { script } = this.#speech;
    if (script.text !== "") script.decorate("\n");
  }

  #gap({ ms, events }: GapEvent): void {
    const isSaid = Math.round(ms) === Math.round(this.#saidMs);
    this.#saidMs = 0;
    const missed = [
      ...(ms > 0 && !isSaid ? [`${Math.round(ms)} ms of audio`] : []),
      ...(events === undefined || events === 0 ? [] : [`${events} events`]),
    ];
    if (missed.length > 0) this.#say(`missed ${missed.join(" and ")}`);
  }

  #reconnecting({ attempt, code, reason }: ReconnectingEvent): void {
    if (attempt === 1) this.#say(`the connection broke (${`${code} ${reason}`.trim()}), joining again`);
  }

  #reconnected({ hello, gapMs }: ReconnectedEvent): void {
    if (this.#options.plan.isJson) this.#print(hello);
    this.#sayRejoined(gapMs);
  }

  /** `missedMs` null: not the timeline that was left. */
  #sayRejoined(missedMs: number | null): void {
    this.#saidMs = missedMs ?? 0;
    if (missedMs === null) this.#say("joined again; the session has begun again since");
    else if (missedMs > 0) this.#say(`joined again; missed ${Math.round(missedMs)} ms of audio`);
    else this.#say("joined again");
  }

  #say(what: string): void {
    this.#options.io.stderr.write(`voicewire: ${what}\n`);
  }

  #print(event: object): void {
    this.#options.io.stdout.write(`${JSON.stringify(event)}\n`);
  }
}

/** Each utterance begins a line, and within a dialogue each input. */
class Lines {
  #utteranceId: string | undefined;
  #input = 0;

  isNew(utteranceId: string, input = this.#input): boolean {
    const isSame = this.#utteranceId === utteranceId && this.#input === input;
    const isFirst = this.#utteranceId === undefined;
    this.#utteranceId = utteranceId;
    this.#input = input;
    return !isSame && !isFirst;
  }
}

/** How far the text of what speaks has come: characters that come again are there already. */
class Spelled {
  #utteranceId: string | undefined;
  #end = 0;
  /** Text up to here comes once more. */
  #againTo = 0;

  /** It is said from its beginning, or from where it was cut: whatever comes is to be shown. */
  begin(utteranceId: string): void {
    this.#utteranceId = utteranceId;
    this.#end = 0;
    this.#againTo = 0;
  }

  recovered(utteranceId: string): void {
    if (utteranceId === this.#utteranceId) this.#againTo = this.#end;
  }

  /** What of it has not come before. */
  newOf(piece: FedText): FedText {
    if (piece.utteranceId !== this.#utteranceId) this.begin(piece.utteranceId);
    const end = piece.start + piece.text.length;
    this.#end = Math.max(this.#end, end);
    const start = Math.min(end, Math.max(piece.start, this.#againTo));
    return { ...piece, start, text: piece.text.slice(start - piece.start) };
  }
}

function viewOf(io: Io, plan: ListenPlan): SpeechView {
  if (!plan.hasCaptions) return { draw: () => undefined, finish: () => undefined };
  const isTaken = plan.isJson || [plan.out?.path, plan.vtt, plan.srt].includes("-");
  const output = isTaken ? io.stderr : io.stdout;
  return mayStyle(output, io.env) ? new KaraokeView(output) : new PlainView(output);
}
