/** One run of `voicewire say`: feeds the text, follows the words and the audio, and ends in one of four ways. */
import { type Connection, VoicewireError } from "../../client/index.ts";
import type { Timer } from "../../kit/clock.ts";
import type { Event, InterruptedEvent, UtteranceDoneEvent, Waterfall } from "../../protocol/events.ts";
import { EXIT } from "../exit.ts";
import { type Io, mayStyle } from "../io.ts";
import { KaraokeView, PlainView, type SpeechView } from "../output/karaoke.ts";
import type { Outputs } from "../output/outputs.ts";
import { ReceivedSpeech } from "../output/received-speech.ts";
import { renderReceipt, renderWaterfall } from "./receipt.ts";
import { feed, type SayText } from "./say-feed.ts";
import type { SayPlan } from "./say-plan.ts";

export interface SpeechRunOptions {
  readonly io: Io;
  readonly plan: SayPlan;
  readonly connection: Connection;
  readonly outputs: Outputs;
}

/** Utterances of a long text that are queued at once; the gateway's own bound is larger. */
const MAX_AHEAD = 4;
/** How long the receipt of an interruption, and the `utterance.done` behind it or behind a failure, are waited for. */
const ANSWER_DEADLINE_MS = 1_500;
/** How long speech that somebody else has cut is waited for to go on. */
const RESUME_WAIT_MS = 5_000;

/** How the run ended, when it did not fail; `unread`: the reader of stdout has gone. */
type Ending = "spoken" | "stopped" | "unread";

export class SpeechRun {
  readonly #options: SpeechRunOptions;
  readonly #speech: ReceivedSpeech;
  /** Utterances that are not done. */
  readonly #open = new Set<string>();
  /** Utterances that somebody else has cut, and that may go on. */
  readonly #cut = new Map<string, Timer>();
  /** Where they are asked for: of each own utterance that has begun, null until it is over. */
  readonly #waterfalls = new Map<string, Waterfall | null>();
  #isAllFed = false;
  /** It is cut by who runs it. */
  #isInterrupting = false;
  #endMs = 0;
  /** Called at each change of `#open`. */
  #wake: () => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;
  readonly #failed: Promise<never>;

  constructor(options: SpeechRunOptions) {
    const { io, plan, connection, outputs } = options;
    this.#options = options;
    this.#speech = new ReceivedSpeech({
      io,
      connection,
      outputs,
      view: plan.isBurst ? null : viewOf(io, plan),
      // A burst runs ahead of those who listen in real time, and a cut is where they are: its cues wait for the end.
      leadMs: plan.isBurst ? Number.POSITIVE_INFINITY : connection.hello.settings.lead_ms,
      onProgress: (atMs) => {
        if (connection.isOpen) connection.played({ at_ms: Math.round(atMs) });
      },
    });
    this.#failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    // It is raced below; a failure before that must not count as unhandled.
    this.#failed.catch(() => undefined);
  }

  /** Resolves with the exit code; throws the gateway's or the upstream's reason where the speech failed. */
  async run(text: SayText): Promise<number> {
    const { io, plan } = this.#options;
    this.#listen();
    let stop: (ending: Ending) => void = () => undefined;
    const stopped = new Promise<Ending>((resolve) => {
      stop = resolve;
    });
    const unlisten = io.onSignal(() => stop("stopped"));
    io.stdout.onBroken(() => stop("unread"));
    try {
      const ending = await Promise.race([
        this.#speak(text),
        this.#failed,
        this.#options.outputs.failed,
        stopped,
      ]);
      if (ending === "spoken") return EXIT.ok;
      const receipt = await this.#interrupt();
      if (ending === "unread") return EXIT.ok;
      if (!plan.isQuiet) io.stderr.write(`${receipt}\n`);
      return EXIT.interrupted;
    } finally {
      for (const timer of this.#cut.values()) timer.cancel();
      unlisten();
      this.#speech.stop();
      // Not before: the live lines on the terminal would be drawn over it.
      for (const latency of this.#waterfalls.values()) {
        if (latency !== null) io.stderr.write(`${renderWaterfall(latency)}\n`);
      }
    }
  }

  #listen(): void {
    const { connection, plan, io } = this.#options;
    if (plan.isJson) {
      const print = (event: Event) => io.stdout.write(`${JSON.stringify(event)}\n`);
      print(connection.hello);
      connection.onEvent(print);
    }
    this.#speech.start();
    connection.on("interrupted", (event) => this.#cutByOthers(event));
    connection.on("utterance.resumed", (event) => this.#goesOn(event.utterance_id));
    connection.on("utterance.started", (event) => {
      if (plan.hasWaterfall && this.#open.has(event.utterance_id))
        this.#waterfalls.set(event.utterance_id, null);
    });
    connection.on("utterance.done", (event) => this.#utteranceDone(event));
    connection.on("error", (event) => {
      if (event.closing === true && this.#isAllSaid) return;
      const ids = event.utterance_id === undefined ? [] : [event.utterance_id];
      if (!ids.every((id) => this.#open.has(id))) return;
      void this.#latenciesKnown(ids).then(() => this.#fail(new VoicewireError(event)));
    });
    connection.on("warning", (event) => {
      if (!plan.isQuiet) io.stderr.write(`voicewire: ${event.message}\n`);
    });
    void connection.closed.then(({ code, reason }) => {
      // All is said and here: a gateway that shuts down now takes nothing from what is still to be shown.
      if (this.#isAllSaid) return;
      const message =
        `The gateway closed the connection before the speech was done: ${code} ${reason}`.trim();
      this.#fail(new VoicewireError({ code: "connection_lost", message, retryable: true }));
    });
  }

  get #isAllSaid(): boolean {
    return this.#isAllFed && this.#open.size === 0;
  }

  #cutByOthers(event: InterruptedEvent): void {
    const { io, plan } = this.#options;
    if (this.#isInterrupting || !this.#open.has(event.utterance_id)) return;
    if (!plan.isQuiet && !plan.isJson) io.stderr.write(`${renderReceipt(event)}\n`);
    if (!event.resumable) return;
    const timer = io.clock.at(io.clock.nowMs() + RESUME_WAIT_MS, () => {
      this.#cut.delete(event.utterance_id);
      this.#open.delete(event.utterance_id);
      this.#wake();
    });
    this.#cut.set(event.utterance_id, timer);
  }

  #goesOn(utteranceId: string): void {
    this.#cut.get(utteranceId)?.cancel();
    this.#cut.delete(utteranceId);
  }

  #utteranceDone(event: UtteranceDoneEvent): void {
    if (!this.#open.has(event.utterance_id)) return;
    this.#endMs = Math.max(this.#endMs, event.end_ms);
    // One that goes on after a cut is over twice, with the same latency: it is one line all the same.
    if (event.latency === null) this.#waterfalls.delete(event.utterance_id);
    else if (this.#options.plan.hasWaterfall) this.#waterfalls.set(event.utterance_id, event.latency);
    if (this.#cut.has(event.utterance_id)) return;
    this.#open.delete(event.utterance_id);
    if (event.outcome === "failed") this.#fail(new VoicewireError(event.error ?? UNEXPLAINED));
    this.#wake();
  }

  /** Resolves when all is said and, on a terminal, heard. */
  async #speak(text: SayText): Promise<Ending> {
    const { plan, connection } = this.#options;
    await feed(text, {
      plan,
      connection,
      show: (piece) => {
        this.#open.add(piece.utteranceId);
        this.#speech.script.append(piece.text, piece);
      },
      decorate: (decoration) => {
        this.#speech.script.decorate(decoration);
      },
      refused: this.#fail,
      room: async () => {
        await this.#until(() => this.#open.size <= MAX_AHEAD);
        await connection.ready();
      },
    });
    this.#isAllFed = true;
    await this.#until(() => this.#isAllSaid);
    await this.#speech.played(this.#endMs);
    return "spoken";
  }

  async #until(isReached: () => boolean): Promise<void> {
    while (!isReached()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Stops the speech and returns what to say of it; does not wait long for a gateway that does not answer. */
  async #interrupt(): Promise<string> {
    const { connection, outputs, plan } = this.#options;
    this.#isInterrupting = true;
    outputs.silence();
    const playedMs = this.#speech.playout.positionMs();
    if (connection.isOpen && !plan.isBurst) connection.played({ at_ms: Math.round(playedMs) });
    const receipt = await this.#receipt();
    if (receipt !== undefined) await this.#latenciesKnown([...this.#waterfalls.keys()]);
    this.#speech.stop();
    if (receipt === undefined) return `Interrupted after ${Math.round(playedMs)} ms`;
    return renderReceipt(receipt);
  }

  async #receipt(): Promise<InterruptedEvent | undefined> {
    const { connection } = this.#options;
    if (!connection.isOpen || this.#isAllSaid) return undefined;
    // A refusal (nothing was speaking yet) is no receipt either.
    return this.#inTime(connection.interrupt().catch(() => undefined));
  }

  /** The latency of what was cut or has failed comes with its `utterance.done`, behind the event that said so. */
  async #latenciesKnown(utteranceIds: readonly string[]): Promise<void> {
    const { connection } = this.#options;
    const isAwaited = (): boolean => utteranceIds.some((id) => this.#waterfalls.get(id) === null);
    if (!isAwaited()) return;
    const done = new Promise<void>((resolve) => {
      connection.on("utterance.done", () => {
        if (!isAwaited()) resolve();
      });
    });
    await this.#inTime(Promise.race([done, connection.closed]));
  }

  /** undefined where it takes too long. */
  async #inTime<T>(answer: Promise<T>): Promise<T | undefined> {
    const { clock } = this.#options.io;
    let timer: Timer | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = clock.at(clock.nowMs() + ANSWER_DEADLINE_MS, () => resolve(undefined));
    });
    const first = await Promise.race([answer, late]);
    timer?.cancel();
    return first;
  }
}

const UNEXPLAINED = {
  code: "internal",
  message: "Speech failed: the gateway gave no reason",
  retryable: true,
} as const;

function viewOf(io: Io, plan: SayPlan): SpeechView {
  if (plan.isQuiet || plan.isJson) return { draw: () => undefined, finish: () => undefined };
  return mayStyle(io.stdout, io.env) ? new KaraokeView(io.stdout) : new PlainView(io.stdout);
}
