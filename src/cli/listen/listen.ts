/** `voicewire listen`: follows a session; audio to a file or stdout, captions to the terminal or to files. */
import { type Connection, VoicewireError } from "../../client/index.ts";
import { GatewayError } from "../../errors.ts";
import { EXIT } from "../exit.ts";
import type { CommandModule } from "../help.ts";
import type { Io } from "../io.ts";
import { type Outputs, prepareOutputs } from "../output/outputs.ts";
import { captionEvents, JSON_EVENTS, joinSession } from "../session/join-session.ts";
import { Following } from "./following.ts";
import { LISTEN_FLAGS, type ListenPlan, planListen } from "./listen-plan.ts";

export const listen: CommandModule = {
  help: {
    name: "listen",
    usage: ["listen [FLAGS] SESSION"],
    about:
      "Follows a session from now on, until Ctrl+C, --for, or the gateway's end. Others do not notice. When the " +
      "connection breaks it comes back by itself and goes on where it was; what is gone by then is said.",
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
      {
        line: "voicewire listen demo --policy lossless --out demo.wav",
        about: "a recording without gaps; a disk that does not keep up slows the session down",
      },
    ],
  },
  run: runListen,
};

const RETRY_MS = 500;
const MAX_RETRY_MS = 5_000;

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
        return await follow(new Following({ io, plan, connection, outputs }), { connection, outputs, end });
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
      policy: plan.policy,
      events: plan.isJson ? JSON_EVENTS : ["characters", "words", "segments", ...captionEvents(plan)],
    },
    resume: plan.resume,
    reconnect: plan.mayReconnect && {
      firstDelayMs: RETRY_MS,
      maxDelayMs: MAX_RETRY_MS,
      ...(plan.mustWait ? { maxTries: Number.POSITIVE_INFINITY } : {}),
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

interface Scene {
  readonly connection: Connection;
  readonly outputs: Outputs;
  readonly end: Ending;
}

async function follow(following: Following, { connection, outputs, end }: Scene): Promise<number> {
  following.start();
  const closed = await Promise.race([connection.closed, end.reached, outputs.failed]).finally(() =>
    following.stop(),
  );
  if (closed === undefined || closed.code === 1000) return end.code;
  throw new VoicewireError({
    code: "connection_lost",
    message: `The gateway closed the connection: ${closed.code} ${closed.reason}`.trim(),
    retryable: true,
  });
}

function pause(io: Io, ms: number): Promise<void> {
  return new Promise((resolve) => {
    io.clock.at(io.clock.nowMs() + ms, resolve);
  });
}
