/** `voicewire listen`: follows a session; audio to a file or stdout, captions to the terminal or to files. */
import { type Connection, VoicewireError } from "../client/connect.ts";
import { GatewayError } from "../errors.ts";
import { EXIT } from "./exit.ts";
import type { CommandModule } from "./help.ts";
import { type Io, mayStyle } from "./io.ts";
import { joinSession, onEveryEvent } from "./join-session.ts";
import { KaraokeView, PlainView, type SpeechView } from "./karaoke.ts";
import { LISTEN_FLAGS, type ListenPlan, planListen } from "./listen-plan.ts";
import { LiveDisplay } from "./live-display.ts";
import { type Outputs, prepareOutputs } from "./outputs.ts";
import { PlayoutClock } from "./playout.ts";
import { Script } from "./script.ts";

export const listen: CommandModule = {
  help: {
    name: "listen",
    usage: ["listen [FLAGS] SESSION"],
    about: "Follows a session from now on, until Ctrl+C, --for, or the gateway's end. Others do not notice.",
    flags: LISTEN_FLAGS,
    examples: [
      { line: "voicewire listen demo", about: "captions, with the current word lit up" },
      {
        line: "voicewire listen demo --wait --format pcm_24000 --out - | ffplay -f s16le -ar 24000 -ch_layout mono -",
        about: "hear it, with captions",
      },
      { line: "voicewire listen demo --out demo.ogg --vtt demo.vtt --for 60", about: "record a minute" },
      {
        line: "voicewire listen demo --json --wait | jq .type",
        about: "every event, as soon as there is one",
      },
    ],
  },
  run: runListen,
};

const RETRY_MS = 500;

async function runListen(io: Io, args: readonly string[]): Promise<number> {
  const plan = planListen(io, args);
  const end = new Ending(io, plan.forMs);
  try {
    const openOutputs = await prepareOutputs(io, { ...plan, isQuiet: false, player: undefined });
    const connection = await joinInTime(io, plan, end);
    if (connection === undefined) return end.code;
    try {
      const outputs = openOutputs();
      try {
        return await follow(io, plan, { connection, outputs, end });
      } finally {
        await outputs.close();
      }
    } finally {
      await connection.close();
    }
  } finally {
    end.close();
  }
}

/** What ends the command from outside: a signal, the time, the reader of stdout. The first one counts. */
class Ending {
  /** Resolves at the first of them. */
  readonly reached: Promise<void>;
  readonly close: () => void;
  #code: number | undefined;

  constructor(io: Io, forMs: number | undefined) {
    let resolve: () => void = () => undefined;
    this.reached = new Promise((done) => {
      resolve = done;
    });
    const end = (code: number) => {
      this.#code ??= code;
      resolve();
    };
    const timer = forMs === undefined ? undefined : io.clock.at(io.clock.nowMs() + forMs, () => end(EXIT.ok));
    const unlisten = io.onSignal(() => end(EXIT.interrupted));
    io.stdout.onBroken(() => end(EXIT.ok));
    this.close = () => {
      timer?.cancel();
      unlisten();
    };
  }

  get isReached(): boolean {
    return this.#code !== undefined;
  }
  get code(): number {
    return this.#code ?? EXIT.ok;
  }
}

/** With --wait waits in the session, and tries again until a gateway is there or the end is reached (undefined). */
async function joinInTime(io: Io, plan: ListenPlan, end: Ending): Promise<Connection | undefined> {
  while (!end.isReached) {
    try {
      return await join(plan);
    } catch (thrown) {
      if (!isNotYetThere(thrown)) throw thrown;
      if (!plan.mustWait) throw explained(thrown, plan);
      await Promise.race([end.reached, pause(io, RETRY_MS)]);
    }
  }
  return undefined;
}

function join(plan: ListenPlan): Promise<Connection> {
  return joinSession({
    baseUrl: plan.url,
    session: plan.session,
    settings: {
      role: "listener",
      // In the session before its speaker: whoever comes late misses the beginning.
      ...(plan.mustWait ? { wait: true } : {}),
      format: plan.format,
      frame_ms: plan.frameMs,
      // Nobody's slow disk or player may hold up a session that others speak in.
      policy: "live",
      events: plan.isJson
        ? ["characters", "words", "segments", "marks"]
        : ["characters", "words", "segments"],
    },
  });
}

function isNotYetThere(thrown: unknown): boolean {
  if (thrown instanceof VoicewireError) return thrown.code === "unknown_session";
  return thrown instanceof GatewayError && thrown.code === "upstream_unreachable";
}

function explained(thrown: unknown, plan: ListenPlan): unknown {
  if (!(thrown instanceof VoicewireError)) return thrown;
  return new GatewayError(
    "unknown_session",
    `No session "${plan.session}" at ${plan.url}: expected one that somebody speaks in; --wait waits for it, ` +
      `voicewire say --session ${plan.session} "Hello" makes it`,
    { cause: thrown },
  );
}

interface Following {
  readonly connection: Connection;
  readonly outputs: Outputs;
  readonly end: Ending;
}

async function follow(io: Io, plan: ListenPlan, { connection, outputs, end }: Following): Promise<number> {
  const script = new Script();
  const playout = new PlayoutClock(io.clock);
  const display = new LiveDisplay({ clock: io.clock, script, playout, view: viewOf(io, plan) });
  const frameMs = connection.audio?.frame_ms ?? plan.frameMs;
  outputs.originMs = connection.audio?.start_ms ?? 0;
  const breakLine = () => {
    if (script.text !== "") script.decorate("\n");
    outputs.line();
  };
  if (plan.isJson) onEveryEvent(connection, (event) => io.stdout.write(`${JSON.stringify(event)}\n`));
  connection.onAudio((frame, { atMs }) => {
    playout.frame(atMs + frameMs, frameMs);
    outputs.frame(frame, frameMs);
  });
  const lines = new Lines();
  connection.on("segment", (event) => {
    if (lines.isNew(event.utterance_id, event.dialogue_input_index)) breakLine();
  });
  connection.on("characters", (event) => {
    if (lines.isNew(event.utterance_id)) breakLine();
    const piece = { utteranceId: event.utterance_id, start: event.start, text: event.characters.join("") };
    script.append(piece.text, piece);
    outputs.text(piece);
  });
  connection.on("words", (event) => {
    for (const word of event.words) script.time(event.utterance_id, word);
    outputs.words(event);
  });
  connection.on("gap", (event) => io.stderr.write(`voicewire: missed ${event.ms} ms of audio\n`));
  connection.on("warning", (event) => io.stderr.write(`voicewire: ${event.message}\n`));
  display.start();
  const closed = await Promise.race([connection.closed, end.reached, outputs.failed]).finally(() =>
    display.stop(),
  );
  if (closed === undefined || closed.code === 1000) return end.code;
  throw new VoicewireError({
    code: "connection_lost",
    message: `The gateway closed the connection: ${closed.code} ${closed.reason}`.trim(),
    retryable: true,
  });
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

function viewOf(io: Io, plan: ListenPlan): SpeechView {
  if (!plan.hasCaptions) return { draw: () => undefined, finish: () => undefined };
  const isTaken = plan.isJson || [plan.out?.path, plan.vtt, plan.srt].includes("-");
  const output = isTaken ? io.stderr : io.stdout;
  return mayStyle(output, io.env) ? new KaraokeView(output) : new PlainView(output);
}

function pause(io: Io, ms: number): Promise<void> {
  return new Promise((resolve) => {
    io.clock.at(io.clock.nowMs() + ms, resolve);
  });
}
