/** Clients that all come back: when they try, whom they meet, and when each is joined again. */
import { backoffMs } from "../../../src/client/backoff.ts";
import { relayLost } from "../../../src/cluster/relay/relay-link.ts";
import type { Random } from "../random.ts";
import { defaultOf } from "./parameters.ts";

export interface StormInput {
  /** When each client sees that its connection is over, ms after the loss. */
  readonly lostAtMs: Float64Array;
  /** Until then those of a node that is lost wait where they arrive, and are sent away: others do not know yet. */
  readonly heldUntilMs: Float64Array;
  /** Nodes that take them, each chosen equally often. */
  readonly nodes: number;
  /** A node's time for one join, ms. */
  readonly joinMs: number;
  /** Beyond so many waiting joins a node's kernel answers no more. */
  readonly acceptQueue: number;
  /** Until then every node refuses: the bus is away. */
  readonly refusedUntilMs: number;
}

export interface Storm {
  readonly clients: number;
  /** When they are joined again, ms; of all that came back. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly lastMs: number;
  /** Of all clients, those that are joined within `--keep-ms` of the loss: they miss nothing of a session that went on. */
  readonly inTimeShare: number;
  /** First packets that were not answered. */
  readonly unanswered: number;
  readonly mostWaiting: number;
  readonly notBack: number;
}

/** A first packet that is not answered is sent again after 1 s, 2 s, 4 s ... (RFC 6298 section 2.1, as Linux does). */
const FIRST_RETRY_MS = 1000;
/** The client library gives up a try then (src/client/connect.ts). */
const CONNECT_TIMEOUT_MS = 10_000;
/** And the whole after so many (src/client/reconnector.ts). */
const MAX_TRIES = 10;
/** What a node says while the bus is away, and when the session's node is found to be gone. */
const RETRY_AFTER_MS = relayLost("").retryAfterMs ?? 0;
const KEEP_MS = defaultOf("keepMs");

export function simulateStorm(input: StormInput, random: Random): Storm {
  const clients = input.lostAtMs.length;
  const due = new Agenda();
  const attempts = new Uint8Array(clients);
  const packets = new Uint8Array(clients);
  const triedAtMs = new Float64Array(clients);
  const target = new Int32Array(clients);
  /** When a node has done all joins that it has accepted. */
  const busyUntilMs = new Float64Array(input.nodes);
  const backAtMs = new Float64Array(clients).fill(Number.POSITIVE_INFINITY);
  let unanswered = 0;
  let mostWaiting = 0;

  const tryAgain = (client: number, nowMs: number, leastMs: number): void => {
    const attempt = (attempts[client] ?? 0) + 1;
    if (attempt > MAX_TRIES) return;
    attempts[client] = attempt;
    packets[client] = 0;
    due.add(nowMs + Math.max(leastMs, backoffMs(attempt, random.next())), client);
  };
  const knock = (client: number, nowMs: number): void => {
    if (packets[client] === 0) {
      triedAtMs[client] = nowMs;
      target[client] = random.below(input.nodes);
    }
    const node = target[client] ?? 0;
    const freeAtMs = Math.max(nowMs, busyUntilMs[node] ?? 0);
    const waiting = (freeAtMs - nowMs) / input.joinMs;
    const triedForMs = nowMs - (triedAtMs[client] ?? nowMs);
    if (waiting >= input.acceptQueue) {
      unanswered += 1;
      const retryMs = FIRST_RETRY_MS * 2 ** (packets[client] ?? 0);
      packets[client] = (packets[client] ?? 0) + 1;
      if (triedForMs + retryMs < CONNECT_TIMEOUT_MS) due.add(nowMs + retryMs, client);
      else tryAgain(client, nowMs - triedForMs + CONNECT_TIMEOUT_MS, 0);
      return;
    }
    mostWaiting = Math.max(mostWaiting, waiting);
    const doneMs = freeAtMs + input.joinMs;
    busyUntilMs[node] = doneMs;
    const heldUntilMs = input.heldUntilMs[client] ?? 0;
    if (doneMs < input.refusedUntilMs) tryAgain(client, doneMs, RETRY_AFTER_MS);
    else if (doneMs < heldUntilMs) tryAgain(client, heldUntilMs, RETRY_AFTER_MS);
    else backAtMs[client] = doneMs;
  };

  for (let client = 0; client < clients; client += 1) tryAgain(client, input.lostAtMs[client] ?? 0, 0);
  due.run(knock);

  const back = backAtMs.filter((atMs) => Number.isFinite(atMs)).sort();
  const at = (fraction: number): number => back[Math.max(0, Math.ceil(fraction * back.length) - 1)] ?? 0;
  const inTime = back.filter((atMs) => atMs <= KEEP_MS).length;
  return {
    clients,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    lastMs: at(1),
    inTimeShare: clients === 0 ? 1 : inTime / clients,
    unanswered,
    mostWaiting: Math.round(mostWaiting),
    notBack: clients - back.length,
  };
}

/** What is due when, in steps of a millisecond: a million entries in linear time. */
class Agenda {
  readonly #steps = new Map<number, number[]>();
  #last = 0;

  add(atMs: number, client: number): void {
    const step = Math.ceil(atMs);
    this.#last = Math.max(this.#last, step);
    const there = this.#steps.get(step);
    if (there === undefined) this.#steps.set(step, [client]);
    else there.push(client);
  }

  run(act: (client: number, atMs: number) => void): void {
    // It grows while it runs.
    for (let step = 0; step <= this.#last; step += 1) {
      for (const client of this.#steps.get(step) ?? []) act(client, step);
      this.#steps.delete(step);
    }
  }
}
