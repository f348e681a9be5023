import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import type { AttackArgs } from "../../../bench/kit/commands.ts";
import { BEAT_MS, HostileCrowd } from "../../../bench/kit/hostile-crowd.ts";
import { CROWD_KINDS, HOSTILE_KINDS, type HostileKind } from "../../../bench/kit/hostile-kinds.ts";
import { openFilesLimit } from "../../../bench/kit/open-files.ts";
import { until } from "../../helpers/until.ts";

const CROWD = 5;
const UPGRADED = "HTTP/1.1 101 Switching Protocols\r\n\r\n";

/** A server that answers the first piece of each connection with `answer`; null: never. */
class Target implements AsyncDisposable {
  readonly received: string[] = [];
  readonly sockets: Socket[] = [];
  readonly #server = createServer((socket) => {
    this.sockets.push(socket);
    const index = this.received.push("") - 1;
    socket.on("error", () => undefined);
    socket.on("data", (data: Buffer) => {
      if (this.received[index] === "" && this.answer !== null) socket.write(this.answer);
      this.received[index] += data.toString("latin1");
    });
  });
  readonly answer: string | null;

  constructor(answer: string | null) {
    this.answer = answer;
  }

  async port(): Promise<number> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}

function argsFor(kind: HostileKind, port: number): AttackArgs {
  const many = { count: CROWD, rampMs: 0, lifeMs: 20_000, sessions: 2, sessionName: "good" };
  return { kind, port, token: "good", badToken: "bad", ...many };
}

/** Its clients act ten times as often as those of a bench. */
function crowdOf(args: AttackArgs): HostileCrowd {
  return new HostileCrowd(args, BEAT_MS / 10);
}

describe("HostileCrowd", () => {
  it("connects every client, of every kind", async () => {
    for (const kind of [...Object.keys(HOSTILE_KINDS), ...Object.keys(CROWD_KINDS)] as HostileKind[]) {
      await using target = new Target(UPGRADED);
      const crowd = crowdOf(argsFor(kind, await target.port()));
      await until(`every client is connected: ${kind}`, () => crowd.counters.connections === CROWD);
      crowd.leave();
    }
  });

  it("sends a head byte by byte, and never its end", async () => {
    await using target = new Target(null);
    const crowd = crowdOf(argsFor("slow-head", await target.port()));
    await until(
      "two bytes of every head",
      () => target.received.length === CROWD && target.received.every((text) => text.endsWith("aa")),
    );
    crowd.leave();
    expect(target.received.join("")).not.toContain("\r\n\r\n");
  });

  it("comes back with its bad token when it was refused", async () => {
    await using target = new Target("HTTP/1.1 401 Unauthorized\r\n\r\n");
    const crowd = crowdOf(argsFor("bad-token", await target.port()));
    await until("every client is refused twice", () => (crowd.counters.statuses["401"] ?? 0) >= 2 * CROWD);
    crowd.leave();
    expect(target.received[0]).toContain("Authorization: Bearer bad\r\n");
  });

  it("floods only once it is upgraded", async () => {
    await using refusing = new Target(null);
    const waiting = crowdOf(argsFor("legal-flood", await refusing.port()));
    await using target = new Target(UPGRADED);
    const crowd = crowdOf(argsFor("legal-flood", await target.port()));
    await until("two beats of every client", () => crowd.counters.writes >= 2 * CROWD);
    expect(waiting.counters).toMatchObject({ connected: CROWD, writes: 0 });
    crowd.leave();
    waiting.leave();
    expect(target.received[0]).toContain('{"type":"ping"}');
  });

  it("counts the codes that a flood of a crowd is told, and comes with pings and messages that are refused", async () => {
    await using target = new Target(UPGRADED);
    const crowd = crowdOf(argsFor("flood", await target.port()));
    await until("a beat of every client", () => crowd.counters.writes >= CROWD);
    for (const socket of target.sockets) socket.write('{"type":"error","code":"unknown_type"}');
    await until("each is told", () => crowd.counters.codes.unknown_type === CROWD);
    crowd.leave();
    expect(target.received[0]).toContain("no such thing");
  });

  it("reads one piece now and then where it is slow", async () => {
    await using target = new Target(UPGRADED);
    const crowd = crowdOf(argsFor("slow", await target.port()));
    await until("every client is connected", () => target.sockets.length === CROWD);
    for (const socket of target.sockets) socket.write(Buffer.alloc(16_000_000));
    let readBytes = -1;
    while (crowd.counters.readBytes !== readBytes) {
      ({ readBytes } = crowd.counters);
      await new Promise((resolve) => setTimeout(resolve, BEAT_MS / 5));
    }
    expect(readBytes).toBeLessThan(CROWD * 16_000_000);
    await until("it reads another piece", () => crowd.counters.readBytes > readBytes);
    crowd.leave();
  });

  it("has left for good after leave, and by itself when its life is over", async () => {
    await using target = new Target(null);
    const port = await target.port();
    const crowds = [crowdOf(argsFor("silent", port)), crowdOf({ ...argsFor("silent", port), lifeMs: 500 })];
    await until("every client is connected", () =>
      crowds.every(({ counters }) => counters.connected === CROWD),
    );
    crowds[0]?.leave();
    await until("every client has left", () => crowds.every(({ counters }) => counters.connected === 0));
    await until("every socket is closed", () => target.sockets.every(({ destroyed }) => destroyed));
    expect(target.sockets).toHaveLength(2 * CROWD);
  });
});

describe("openFilesLimit", () => {
  const limits = (soft: string) =>
    `Limit                     Soft Limit           Hard Limit           Units\nMax open files            ${soft.padEnd(20)} 20000                files\n`;

  it("reads the soft limit", () => {
    expect(openFilesLimit(limits("1024"))).toBe(1024);
    expect(openFilesLimit(limits("unlimited"))).toBe(Number.POSITIVE_INFINITY);
    expect(() => openFilesLimit("Limit Soft Limit\n")).toThrow("Max open files");
  });
});
