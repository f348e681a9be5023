/** What listen and captions have in common: which session is followed, waiting for it, and what ends that. */
import { type Connection, VoicewireError } from "../../client/index.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import { EXIT, usageError } from "../exit.ts";
import { type Flag, integerFlag, type ParsedArguments } from "../flags.ts";
import type { Io } from "../io.ts";
import { CONFIG_FLAG, settingsOf } from "../settings.ts";
import { gatewayKey, KEY_FLAG } from "./gateway-key.ts";
import { localGatewayUrl } from "./gateway-target.ts";
import { gatewayUrl, type JoinOptions, joinSession } from "./join-session.ts";

export const URL_FLAG: Flag = {
  name: "url",
  short: "u",
  value: "URL",
  about: "The gateway; default: the local one",
};
export const FOLLOW_FLAGS: readonly Flag[] = [
  { name: "wait", about: "Keep trying until the session and its gateway are there" },
  { name: "for", value: "SECONDS", about: "End after so many seconds" },
  KEY_FLAG,
  CONFIG_FLAG,
];

export interface FollowPlan {
  readonly session: string;
  readonly url: string;
  /** The gateway's key or a token; empty: none. */
  readonly key: string;
  readonly mustWait: boolean;
  /** undefined = no end. */
  readonly forMs: number | undefined;
}

const MAX_FOR_SECONDS = 365 * 24 * 3600;

/** Throws `invalid_config`. `example`: the command with a session. */
export function planFollow(io: Io, parsed: ParsedArguments, example: string): FollowPlan {
  const [session, surplus] = parsed.positionals;
  if (session === undefined) throw usageError(`No session: expected its id, as in ${example}`, "session");
  if (surplus !== undefined) throw usageError(`Argument "${surplus}": expected one session only`, surplus);
  const { config } = settingsOf(io, parsed);
  const url = parsed.text(URL_FLAG.name);
  const forSeconds = integerFlag(parsed, "for", { min: 1, max: MAX_FOR_SECONDS, fallback: 0 });
  return {
    session,
    url: url === undefined ? localGatewayUrl(config) : gatewayUrl(url),
    key: gatewayKey(io, parsed),
    mustWait: parsed.has("wait"),
    forMs: forSeconds === 0 ? undefined : forSeconds * 1000,
  };
}

/** What ends the command from outside: a signal, the time, the reader of stdout. The first one counts. */
export class Ending {
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

const RETRY_MS = 500;
const MAX_RETRY_MS = 5_000;

export interface FollowOptions extends Pick<JoinOptions, "settings" | "resume"> {
  readonly clock: Clock;
  readonly end: Ending;
  /** Comes back by itself when the socket breaks. */
  readonly mayReconnect: boolean;
}

/** Joins as a listener. With --wait tries until a gateway is there, or until the end is reached: undefined. */
export async function joinToFollow(
  plan: FollowPlan,
  options: FollowOptions,
): Promise<Connection | undefined> {
  const { clock, end, settings, resume, mayReconnect } = options;
  const { url: baseUrl, key, session, mustWait } = plan;
  while (!end.isReached) {
    try {
      return await joinSession({
        baseUrl,
        key,
        session,
        // In the session before its speaker: whoever comes late misses the beginning.
        settings: { role: "listener", ...(mustWait ? { wait: true } : {}), ...settings },
        resume,
        reconnect: mayReconnect && {
          firstDelayMs: RETRY_MS,
          maxDelayMs: MAX_RETRY_MS,
          ...(mustWait ? { maxTries: Number.POSITIVE_INFINITY } : {}),
        },
      });
    } catch (thrown) {
      if (!isNotYetThere(thrown)) throw thrown;
      if (!mustWait) throw explained(thrown, plan);
      const retry = new Promise<void>((resolve) => {
        clock.at(clock.nowMs() + RETRY_MS, resolve);
      });
      await Promise.race([end.reached, retry]);
    }
  }
  return undefined;
}

function isNotYetThere(thrown: unknown): boolean {
  if (thrown instanceof VoicewireError) return thrown.code === "unknown_session";
  return thrown instanceof GatewayError && thrown.code === "upstream_unreachable";
}

function explained(thrown: unknown, { session, url }: FollowPlan): unknown {
  if (!(thrown instanceof VoicewireError)) return thrown;
  return new GatewayError(
    "unknown_session",
    `No session "${session}" at ${url}: expected one that somebody speaks in; --wait waits for it, ` +
      `voicewire say --session ${session} "Hello" makes it`,
    { cause: thrown },
  );
}

/** Resolves with the exit code at the end, or at the session's; throws where the connection was lost. */
export async function untilEnd(connection: Connection, end: Ending): Promise<number> {
  const closed = await Promise.race([connection.closed, end.reached]);
  if (closed === undefined || closed.code === 1000) return end.code;
  throw new VoicewireError({
    code: "connection_lost",
    message: `The gateway closed the connection: ${closed.code} ${closed.reason}`.trim(),
    retryable: true,
  });
}
