/** Good sessions of a gateway with keys: a speaker that listens each, watched beside whoever else is there, and alone. */
import { tokenFor } from "../../test/helpers/key-file.ts";
import { measureWindow, speakMessage, speechText, type Window } from "./bench.ts";
import type { GatewayCommands, HostileCommands, LatenessSummary, LoadCommands } from "./commands.ts";
import type { Fixture } from "./fixture.ts";
import { wait } from "./monotonic.ts";

export const LEAD_MS = 300;
const BATCH_MS = 100;
const UTTERANCE_SECONDS = 30;
const TOKEN_SECONDS = 3600;
/** Several batches. */
const REBASE_MS = 1000;
/** Requests to the upstream that a session has open at most. */
export const UPSTREAM_REQUESTS = 2;
/** What is less late than the pacer's slot is wide is not late by design. */
export const ON_TIME_MS = 4;
const GRANTS = { sessions: ["*"], allow: ["open", "speak", "listen", "interrupt"] };
/** Settings of the gateway: all clients are one subject. */
export const NO_LIMITS = { connectionsPerSubject: 0, sessionsPerSubject: 0, charactersPerMinute: 0 };

export interface GoodParts {
  readonly gateway: Fixture<GatewayCommands>;
  readonly load: Fixture<LoadCommands>;
  readonly hostile: Fixture<HostileCommands>;
}

export interface GoodSessions {
  /** Sessions are `NAME-0` and so on. */
  readonly name: string;
  readonly sessions: number;
  /** They begin over this time, ms. */
  readonly rampMs: number;
  /** From the last one to the first window, ms. */
  readonly settleMs: number;
  /** Longer than the run: a session that has nothing more to say would be early for ever. */
  readonly spokenSeconds: number;
}

export interface Seen {
  readonly window: Window;
  readonly lateness: LatenessSummary;
  readonly delayP99Ms: number;
}

export function goodToken(): string {
  return tokenFor(GRANTS, { lifeSeconds: TOKEN_SECONDS });
}

/** Resolves when all speak and their grids are anchored. */
export async function openGoodSessions(
  { gateway, load }: GoodParts,
  { name, sessions, rampMs, settleMs, spokenSeconds }: GoodSessions,
): Promise<void> {
  const message = speakMessage(speechText(UTTERANCE_SECONDS));
  const { failed } = await load.ask("open", {
    group: "sessions",
    port: gateway.port,
    count: sessions,
    path: `/live/${name}-{i}?format=ulaw_8000&events=none&lead_ms=${LEAD_MS}`,
    credential: goodToken(),
    rampMs,
    messages: Array.from({ length: Math.ceil(spokenSeconds / UTTERANCE_SECONDS) }, () => message),
    wantsText: true,
    grid: { leadMs: LEAD_MS, batchMs: BATCH_MS, isAnchored: true },
  });
  if (failed > 0) throw new Error(`Sessions can't be opened: ${failed} of ${sessions} failed`);
  await wait(settleMs);
  const { anchored } = await load.ask("anchor", { group: "sessions" });
  if (anchored < sessions) throw new Error(`Sessions do not answer: ${anchored} of ${sessions} did`);
}

/** A window without the crowd: the sessions' grids are hung anew in the calm second before it. */
export async function watchAlone(parts: GoodParts, seconds: number): Promise<Seen> {
  await parts.load.ask("rebase", { group: "sessions", ms: REBASE_MS });
  return await watchGood(parts, seconds);
}

export async function watchGood({ gateway, load, hostile }: GoodParts, seconds: number): Promise<Seen> {
  await load.ask("restart", { group: "sessions" });
  const window = await measureWindow({
    serverPid: gateway.pid,
    load,
    group: "sessions",
    seconds,
    otherPid: hostile.pid,
  });
  const lateness = await load.ask("lateness", { group: "sessions" });
  const { delayP99Ms } = await load.ask("grid", { group: "sessions" });
  return { window, lateness, delayP99Ms };
}

export function serverCores({ cpuMs, seconds }: Window): number {
  return cpuMs / seconds / 1000;
}
