/** A crowd of hostile clients over bare TCP. One that the server ends comes back; all leave by themselves in the end. */
import { connect, type Socket } from "node:net";
import type { AttackArgs, AttackCounters } from "./commands.ts";
import { type HostilePlan, hostilePlan } from "./hostile-kinds.ts";

/** Each client acts once in this time, ms: it writes, or comes back. The crowd's turns are spread evenly over it. */
export const BEAT_MS = 1000;
const STEPS = 50;
/** Beats from the end of a connection to the next one. */
const BEATS_AWAY = 2;
/** Of the first answer: its status line is in it. */
const STATUS_CHARS = 12;

export class HostileCrowd {
  readonly #clients: HostileClient[];
  readonly #timer: NodeJS.Timeout;
  readonly #end: NodeJS.Timeout;
  readonly #tally: Tally = {
    connections: 0,
    ended: 0,
    failed: 0,
    statuses: {},
    writes: 0,
    readBytes: 0,
    codes: {},
  };
  #step = 0;

  constructor(args: AttackArgs, beatMs: number = BEAT_MS) {
    const rampBeats = Math.max(1, Math.ceil(args.rampMs / beatMs));
    this.#clients = Array.from({ length: args.count }, (_, index) => {
      // Which beat it comes in, and not which step: those are spread by its number.
      const beatsAway = Math.floor((index * rampBeats) / args.count);
      return new HostileClient({
        port: args.port,
        plan: hostilePlan(args, index),
        beatsAway,
        tally: this.#tally,
      });
    });
    this.#timer = setInterval(() => this.#turn(), beatMs / STEPS);
    this.#end = setTimeout(() => this.leave(), args.lifeMs);
  }

  get counters(): AttackCounters {
    return { ...this.#tally, connected: this.#clients.filter(({ isConnected }) => isConnected).length };
  }

  /** Idempotent. */
  leave(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#end);
    for (const client of this.#clients) client.leave();
  }

  #turn(): void {
    for (let index = this.#step; index < this.#clients.length; index += STEPS) this.#clients[index]?.beat();
    this.#step = (this.#step + 1) % STEPS;
  }
}

interface Tally {
  connections: number;
  ended: number;
  failed: number;
  readonly statuses: Record<string, number>;
  writes: number;
  readBytes: number;
  readonly codes: Record<string, number>;
}

interface ClientOptions {
  readonly port: number;
  readonly plan: HostilePlan;
  /** Beats until it comes. */
  readonly beatsAway: number;
  readonly tally: Tally;
}

class HostileClient {
  readonly #options: ClientOptions;
  #socket: Socket | null = null;
  #beatsAway: number;
  #isConnected = false;
  /** Its beats begin: it is connected, and upgraded where it wants to be. */
  #isReady = false;
  #answer = "";
  #beats = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#beatsAway = options.beatsAway;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  beat(): void {
    const { plan, tally } = this.#options;
    if (this.#socket === null) {
      if (this.#beatsAway === 0) this.#connect();
      else this.#beatsAway -= 1;
      return;
    }
    this.#beats += 1;
    if (plan.readsEvery !== undefined && this.#beats % plan.readsEvery === 0) this.#socket.resume();
    // Where the server takes no more, the client's memory does not grow with it.
    if (plan.beat === null || !this.#isReady || this.#socket.writableNeedDrain) return;
    this.#socket.write(plan.beat);
    tally.writes += 1;
  }

  /** By a reset: nothing of it stays in the kernel, where thousands would use up the ports. */
  leave(): void {
    this.#socket?.resetAndDestroy();
  }

  #connect(): void {
    const { port, plan, tally } = this.#options;
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.#socket = socket;
    socket.on("connect", () => {
      this.#isConnected = true;
      tally.connections += 1;
      this.#isReady = !plan.upgrades;
      if (plan.first !== null) socket.write(plan.first);
    });
    socket.on("data", (data: Buffer) => this.#read(socket, data));
    // A reset ends it as an end does; `close` follows both.
    socket.on("error", () => socket.destroy());
    socket.on("end", () => socket.destroy());
    socket.on("close", () => this.#closed());
  }

  #read(socket: Socket, data: Buffer): void {
    const { plan, tally } = this.#options;
    tally.readBytes += data.length;
    if (this.#answer.length >= STATUS_CHARS) {
      if (plan.stopsReading) socket.pause();
      if (plan.countsCodes === true) countCodes(tally.codes, data);
      return;
    }
    this.#answer += data.toString("latin1", 0, STATUS_CHARS);
    if (this.#answer.length < STATUS_CHARS) return;
    const status = this.#answer.slice("HTTP/1.1 ".length, STATUS_CHARS);
    tally.statuses[status] = (tally.statuses[status] ?? 0) + 1;
    if (!plan.upgrades) return;
    if (status === "101") this.#isReady = true;
    else socket.resetAndDestroy();
    if (plan.stopsReading) socket.pause();
  }

  #closed(): void {
    const { tally } = this.#options;
    if (this.#isConnected) tally.ended += 1;
    else tally.failed += 1;
    this.#socket = null;
    this.#isConnected = false;
    this.#isReady = false;
    this.#answer = "";
    this.#beatsAway = BEATS_AWAY;
  }
}

/** Errors that the gateway says; one that is cut in two by the network is not counted. */
function countCodes(codes: Record<string, number>, data: Buffer): void {
  for (const [, code = ""] of data.toString("latin1").matchAll(/"code":"(\w+)"/g))
    codes[code] = (codes[code] ?? 0) + 1;
}
