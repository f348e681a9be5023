/**
 * One run of `voicewire listen`: takes what a connection hands out to the screen and the files. The connection may
 * have been broken and joined again in between: it hands out nothing twice, and tells what is gone.
 */
import type { Connection, ReconnectedEvent, ReconnectingEvent } from "../../client/index.ts";
import { recovered } from "../../client/recovery.ts";
import type {
  AudioDescription,
  CharactersEvent,
  GapEvent,
  InterruptedEvent,
  WarningEvent,
  WordsEvent,
} from "../../protocol/events.ts";
import { type Io, mayStyle } from "../io.ts";
import { KaraokeView, PlainView, type SpeechView } from "../output/karaoke.ts";
import { LiveDisplay } from "../output/live-display.ts";
import type { Outputs } from "../output/outputs.ts";
import { PlayoutClock } from "../output/playout.ts";
import { Script } from "../output/script.ts";
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
  readonly #script = new Script();
  readonly #playout: PlayoutClock;
  readonly #display: LiveDisplay;
  readonly #lines = new Lines();
  readonly #spelled = new Spelled();
  #frameMs: number;
  /** End of the audio that has come, ms on the timeline. */
  #endMs: number;
  /** Frames before it were received by an earlier run of the program. */
  #fromMs: number;
  /** From the timeline to the screen's clock, which goes on when a session begins anew. */
  #shiftMs = 0;
  /** Told when the connection was joined again: the `gap` that follows would tell it once more. */
  #toldMs = 0;

  constructor(options: FollowingOptions) {
    const { io, plan, connection, outputs } = options;
    this.#options = options;
    this.#playout = new PlayoutClock(io.clock);
    this.#display = new LiveDisplay({
      clock: io.clock,
      script: this.#script,
      playout: this.#playout,
      view: viewOf(io, plan),
    });
    const { resume } = plan;
    const isSameTimeline = connection.hello.resumed === true;
    const startMs = connection.audio?.start_ms ?? 0;
    this.#frameMs = connection.audio?.frame_ms ?? plan.frameMs;
    this.#fromMs = (isSameTimeline ? resume?.atMs : undefined) ?? startMs;
    this.#endMs = Math.max(startMs, this.#fromMs);
    outputs.originMs = this.#endMs;
    if (resume !== undefined) this.#tellResumed(isSameTimeline ? startMs - this.#fromMs : null);
  }

  /** To be called in the turn that the connection was joined in. */
  start(): void {
    const { plan, connection } = this.#options;
    if (plan.isJson) {
      this.#print(connection.hello);
      connection.onEvent((event) => this.#print(event));
    }
    connection.onAudio((frame, { atMs }) => this.#frame(frame, atMs));
    connection.on("segment", (event) => {
      if (this.#lines.isNew(event.utterance_id, event.dialogue_input_index)) this.#breakLine();
    });
    connection.on("characters", (event) => this.#characters(event));
    connection.on("words", (event) => this.#words(event));
    for (const type of ["cue", "interrupted", "utterance.done"] as const) {
      connection.on(type, (event) => {
        this.#options.outputs.caption(event, event.at_ms - connection.hello.settings.lead_ms);
      });
    }
    connection.on("interrupted", (event) => this.#interrupted(event));
    connection.on("gap", (event) => this.#gap(event));
    connection.on("utterance.started", ({ utterance_id }) => this.#spelled.begin(utterance_id));
    connection.on("utterance.resumed", ({ utterance_id }) => this.#spelled.begin(utterance_id));
    connection.on("warning", (event) => this.#warning(event));
    connection.on("reconnecting", (event) => this.#reconnecting(event));
    connection.on("reconnected", (event) => this.#reconnected(event));
    this.#display.start();
  }

  /** Leaves what was said on the screen. Idempotent. */
  stop(): void {
    this.#display.stop();
    this.#options.outputs.endAt(this.#endMs);
  }

  #frame(frame: Uint8Array, atMs: number): void {
    const { outputs } = this.#options;
    // By its middle: a place that was rounded must not cost a frame.
    if (atMs + this.#frameMs / 2 < this.#fromMs) return;
    const missedMs = atMs - this.#endMs;
    if (missedMs >= this.#frameMs / 2) outputs.gap(missedMs, this.#frameMs);
    this.#endMs = atMs + this.#frameMs;
    this.#playout.frame(this.#endMs + this.#shiftMs, this.#frameMs);
    outputs.frame(frame, this.#frameMs);
  }

  #characters(event: CharactersEvent): void {
    if (this.#lines.isNew(event.utterance_id)) this.#breakLine();
    const told = { utteranceId: event.utterance_id, start: event.start, text: event.characters.join("") };
    const piece = this.#spelled.newOf(told);
    if (piece.text === "") return;
    this.#script.append(piece.text, piece);
  }

  #words(event: WordsEvent): void {
    for (const word of event.words) {
      const startMs = word.start_ms + this.#shiftMs;
      this.#script.time(event.utterance_id, {
        ...word,
        start_ms: startMs,
        end_ms: word.end_ms + this.#shiftMs,
      });
    }
  }

  #interrupted({ at_ms: atMs, next_ms: nextMs }: InterruptedEvent): void {
    if (nextMs === null) return;
    this.#script.cut(atMs + this.#shiftMs);
    // The timeline itself goes on elsewhere: nothing was missed between, and nothing is filled in.
    this.#options.outputs.skip(nextMs - this.#endMs, this.#endMs);
    this.#endMs = nextMs;
  }

  /** Its text stays, and the times of its words come anew. */
  #warning(event: WarningEvent): void {
    const told = recovered(event);
    if (told !== null) {
      this.#spelled.recovered(told.utterance_id);
      this.#script.recovered(told);
    }
    this.#tell(event.message);
  }

  #breakLine(): void {
    if (this.#script.text !== "") this.#script.decorate("\n");
  }

  #gap({ ms, events }: GapEvent): void {
    const isTold = Math.round(ms) === Math.round(this.#toldMs);
    this.#toldMs = 0;
    const missed = [
      ...(ms > 0 && !isTold ? [`${Math.round(ms)} ms of audio`] : []),
      ...(events === undefined || events === 0 ? [] : [`${events} events`]),
    ];
    if (missed.length > 0) this.#tell(`missed ${missed.join(" and ")}`);
  }

  #reconnecting({ attempt, code, reason }: ReconnectingEvent): void {
    if (attempt === 1) this.#tell(`the connection broke (${`${code} ${reason}`.trim()}), joining again`);
  }

  #reconnected({ hello, gapMs }: ReconnectedEvent): void {
    if (this.#options.plan.isJson) this.#print(hello);
    // Without the first number another timeline has begun: the file goes on with it, without a hole.
    if (gapMs === null) this.#restart(hello.audio);
    this.#tellResumed(gapMs);
  }

  /** The frames that follow begin a place of their own: behind what is there already. */
  #restart(audio: AudioDescription | null): void {
    const { outputs } = this.#options;
    const startMs = audio?.start_ms ?? 0;
    // The sound of what was told ahead of it does not come any more.
    this.#script.cut(this.#endMs + this.#shiftMs);
    outputs.endAt(this.#endMs);
    this.#frameMs = audio?.frame_ms ?? this.#frameMs;
    this.#shiftMs = this.#playout.receivedMs - startMs;
    this.#fromMs = startMs;
    this.#endMs = startMs;
    outputs.originMs = startMs - outputs.audioMs;
  }

  /** `missedMs` null: not the timeline that was left. */
  #tellResumed(missedMs: number | null): void {
    this.#toldMs = missedMs ?? 0;
    if (missedMs === null) this.#tell("joined again; the session has begun anew since");
    else if (missedMs > 0) this.#tell(`joined again; missed ${Math.round(missedMs)} ms of audio`);
    else this.#tell("joined again");
  }

  #tell(what: string): void {
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

/** How far the text of what speaks has come: characters that are told anew are there already. */
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
