/** `voicewire serve --workers 2`: the built program as several processes behind one port. */
import { readFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { LiveView } from "../../src/protocol/live-view.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort, freePortPair } from "../helpers/free-port.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { until } from "../helpers/until.ts";
import { RtpPhone } from "../kit/rtp-phone.ts";
import { LiveClient, SLOW } from "./live-client.ts";
import { missingForSpeech, PATIENT, type Program, run, serve } from "./program.ts";

vi.setConfig(PATIENT);
const missing =
  process.platform === "linux" ? missingForSpeech() : "only Linux spreads the connections of one port";
const TEXT = "Hello there, general listener, who has all the time of the world to hear this to its end.";

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 40 }));
});
afterAll(async () => {
  await upstream.close();
});

async function serveTwo(...args: string[]) {
  const served = await serve(["--workers", "2", "--upstream-url", upstream.url, "--voice", "v", ...args]);
  const [metricsUrl = ""] = /http:\S+\/metrics/.exec(served.program.stdout.toString()) ?? [];
  const opsUrl = metricsUrl.replace("/metrics", "");
  return { ...served, opsUrl };
}

function childrenOf(program: Program): number[] {
  const { pid } = program.child;
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? [] : text.split(" ").map(Number);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The values of a metric, by worker. */
async function metricOf(opsUrl: string, name: string): Promise<number[]> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return [...text.matchAll(new RegExp(`^${name}\\{worker="\\d"\\} (\\d+)$`, "gm"))].map(([, value]) =>
    Number(value),
  );
}

async function workersUp(opsUrl: string): Promise<unknown> {
  const answer = (await (await fetch(`${opsUrl}/readyz`)).json()) as { workers: unknown };
  return answer.workers;
}

/** As clients do: until the end of a worker is known to the others, they send them there. */
async function comeBack(url: string, path: string): Promise<LiveClient> {
  for (let tries = 0; tries < 20; tries += 1) {
    const client = await LiveClient.connect(url, path);
    if (client.closed === null) return client;
    expect(["", "bus_lost"]).toContain(client.closed.reason);
    await new Promise((resolve) => setTimeout(resolve, 50 * (tries + 1)));
  }
  throw new Error("It never came back");
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `s${index}`);

describe.skipIf(missing !== undefined)(
  `voicewire serve --workers${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    test("counts lines of the audit log that it lost itself, beside those of its workers", async () => {
      using keys = new TestKeys({ server: { grants: { sessions: ["*"], allow: ["admin"] } } });
      const args = ["--keys-file", keys.path, "--audit-log", "/dev/full"];
      const { program, opsUrl } = await serveTwo(...args);
      await using _ = program;
      const headers = { authorization: `Bearer ${keys.key}` };
      const text = await (await fetch(`${opsUrl}/metrics`, { headers })).text();
      const lost = [...text.matchAll(/^voicewire_audit_lines_lost_total\{worker="(\w+)"\} (\d+)$/gm)];
      expect(lost.map(([, worker, count]) => [worker, count])).toEqual([
        ["1", "0"],
        ["2", "0"],
        ["operations", "1"],
      ]);
    });

    test("one live view has the sessions of all workers, and opens any of them", async () => {
      const { program, url, opsUrl } = await serveTwo();
      await using _ = program;
      type View = Pick<LiveView, "nodes" | "sessions">;
      const look = async (query: string) => {
        const answer = await fetch(`${opsUrl}/admin/state?${query}`);
        return (await answer.json()) as { view: View; opened?: { session: { name: string } } };
      };
      // The kernel draws the worker of each connection: eight may all have the same one.
      const clients: LiveClient[] = [];
      let view: View;
      do {
        clients.push(await LiveClient.connect(url, `/live/s${clients.length}?format=none`));
        ({ view } = await look("order=name"));
      } while (new Set(view.sessions.rows.map(({ node }) => node)).size < 2 && clients.length < 40);
      const opened = names(clients.length);
      expect(view.sessions.rows.map(({ name }) => name)).toEqual(opened.toSorted());
      expect(view.nodes.map(({ name }) => name)).toEqual(["worker-1", "worker-2"]);
      expect(new Set(view.sessions.rows.map(({ node }) => node)).size).toBe(2);
      for (const name of opened) {
        expect((await look(`session=${name}`)).opened?.session.name).toBe(name);
      }
      const page = await fetch(`${opsUrl}/admin`);
      expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
      expect((await fetch(`${opsUrl}/admin/main.js`)).status).toBe(200);
      for (const client of clients) expect(client.closed).toBeNull();
    });

    test("20 sessions with their speakers and listeners anywhere are all heard; one scrape counts them all", async () => {
      const { program, url, opsUrl } = await serveTwo();
      await using _ = program;
      const pairs = await Promise.all(
        names(20).map(async (name) => {
          const speaker = await LiveClient.connect(url, `/live/${name}?format=none`);
          const listener = await LiveClient.connect(url, `/live/${name}?role=listener&format=ulaw_8000`);
          return { speaker, listener };
        }),
      );
      for (const { speaker } of pairs) speaker.send({ type: "speak", text: TEXT });
      for (const { listener } of pairs) {
        await until("it is spoken", () => listener.has("utterance.done"), SLOW);
        expect(listener.closed).toBeNull();
        expect(listener.has("gap")).toBe(false);
      }
      const heard = pairs.map(({ listener }) => listener.audioBytes);
      expect(new Set(heard)).toEqual(new Set([heard[0]]));
      expect(heard[0]).toBeGreaterThan(8000);
      const opened = await metricOf(opsUrl, "voicewire_sessions_opened_total");
      expect(opened).toHaveLength(2);
      expect(Math.min(...opened)).toBeGreaterThan(0);
      expect(sum(opened)).toBe(20);
      expect(sum(await metricOf(opsUrl, "voicewire_connections_opened_total"))).toBe(40);
      expect(await (await fetch(`${opsUrl}/healthz`)).json()).toMatchObject({ workers: { up: 2, of: 2 } });
      for (const { speaker, listener } of pairs)
        for (const client of [speaker, listener]) client[Symbol.dispose]();
    });

    test("one that is killed: the other's sessions hear no gap, its own clients come back, and it is started again", async () => {
      const { program, url, opsUrl } = await serveTwo("--grace-ms", "600000");
      await using _ = program;
      const clients = await Promise.all(
        names(16).map((name) => LiveClient.connect(url, `/live/${name}?format=ulaw_8000`)),
      );
      for (const client of clients) client.send({ type: "speak", text: TEXT });
      await until("all speak", () => clients.every(({ audioBytes }) => audioBytes > 0), SLOW);
      const [killed = 0] = childrenOf(program);
      process.kill(killed, "SIGKILL");
      await until("it is back", () => program.stderr.includes("The worker is back"), SLOW);
      // They are its own clients, and those alone.
      const lost = clients.flatMap(({ closed }, index) => (closed === null ? [] : [`s${index}`]));
      const back = await Promise.all(lost.map((name) => comeBack(url, `/live/${name}?format=ulaw_8000`)));
      for (const client of back) {
        expect(client.closed).toBeNull();
        // The other worker was told of its session, and has gone on with it.
        expect(client.events[0]).toMatchObject({ type: "hello", former_epoch: expect.any(String) });
        client.send({ type: "speak", text: "Hello." });
      }
      const others = clients.filter(({ closed }) => closed === null);
      expect(others.length).toBeGreaterThan(0);
      expect(others.length + lost.length).toBe(16);
      for (const client of [...others, ...back]) {
        await until("it is spoken", () => client.has("utterance.done"), SLOW);
        expect(client.closed).toBeNull();
        expect(client.has("gap")).toBe(false);
        expect(client.audioBytes).toBeGreaterThan(1000);
      }
      expect(new Set(others.map(({ audioBytes }) => audioBytes)).size).toBe(1);
      expect(await workersUp(opsUrl)).toEqual({ up: 2, of: 2 });
      expect(sum(await metricOf(opsUrl, "voicewire_worker_restarts_total"))).toBe(1);
      expect(childrenOf(program)).not.toContain(killed);
      for (const client of [...clients, ...back]) client[Symbol.dispose]();
    });

    test("clients of a killed worker's sessions are closed with bus_lost, also those relayed to it", async () => {
      const { program, url } = await serveTwo("--grace-ms", "600000");
      await using _ = program;
      // The kernel draws the worker of each: with so many it is one in a million that none is relayed to the other.
      const pairs = await Promise.all(
        names(48).map(async (name) => [
          await LiveClient.connect(url, `/live/${name}?format=none`),
          await LiveClient.connect(url, `/live/${name}?role=listener&format=ulaw_8000`),
        ]),
      );
      const clients = pairs.flat();
      const [killed = 0] = childrenOf(program);
      process.kill(killed, "SIGKILL");
      // Of connections to the one that is killed, and of those relayed to it.
      const ended = () => clients.filter(({ closed }) => closed !== null);
      await until(
        "both kinds have ended",
        () => ended().some(({ closed }) => closed?.reason === "bus_lost"),
        SLOW,
      );
      expect(ended().length).toBeLessThan(clients.length);
      for (const client of clients) client[Symbol.dispose]();
      using speaker = await comeBack(url, "/live/s0?format=ulaw_8000");
      speaker.send({ type: "speak", text: "Hello." });
      await until("it is spoken", () => speaker.has("utterance.done"), SLOW);
    });

    test("SIGTERM: speech ends at all of them before connections do, then all end", async () => {
      const { program, url } = await serveTwo("--drain-ms", "60000");
      await using _ = program;
      const pairs = await Promise.all(
        names(8).map(async (name) => {
          const speaker = await LiveClient.connect(url, `/live/${name}?format=none`);
          const listener = await LiveClient.connect(url, `/live/${name}?role=listener&format=ulaw_8000`);
          return { speaker, listener };
        }),
      );
      for (const { speaker } of pairs) speaker.send({ type: "speak", text: TEXT });
      await until("all are heard", () => pairs.every(({ listener }) => listener.audioBytes > 0), SLOW);
      const children = childrenOf(program);
      expect(children).toHaveLength(2);
      program.child.kill("SIGTERM");
      expect((await program.ended).code).toBe(0);
      for (const { listener } of pairs) {
        await until("the end", () => listener.closed !== null, SLOW);
        expect(listener.has("utterance.done")).toBe(true);
        // By its own worker, or by that of its session.
        expect(["draining", "bus_lost"]).toContain(listener.closed?.reason);
      }
      expect(children.filter(isAlive)).toEqual([]);
    });

    test("a call is announced at any worker, and its answer names that worker's AudioSocket port", async () => {
      const port = await freePortPair();
      const { program, url } = await serveTwo("--audiosocket-port", `${port}`);
      await using _ = program;
      const answers = await Promise.all(
        names(16).map(async (session) => {
          const body = JSON.stringify({ session });
          // Each on a connection of its own.
          const headers = { connection: "close", "content-type": "application/json" };
          const answer = await fetch(`${url}/carrier/audiosocket`, { method: "POST", body, headers });
          return (await answer.json()) as { uuid: string; port: number };
        }),
      );
      expect(new Set(answers.map((answer) => answer.port))).toEqual(new Set([port, port + 1]));
      const second = answers.find((answer) => answer.port === port + 1);
      const call = connectTcp(port + 1, "127.0.0.1");
      let receivedBytes = 0;
      call.on("data", (bytes) => {
        receivedBytes += bytes.length;
      });
      // The packet that names the call: kind 1, its length, the UUID.
      const uuid = Buffer.from(second?.uuid.replaceAll("-", "") ?? "", "hex");
      call.write(Buffer.concat([Buffer.from([1, 0, 16]), uuid]));
      await until("sound", () => receivedBytes > 1000, SLOW);
      call.destroy();
    });

    test("RTP calls have ports of their own worker's half, are spoken to there, and end from any worker", async () => {
      const from = (await freePort()) & ~1;
      const { program, url } = await serveTwo("--rtp-ports", `${from}-${from + 63}`);
      await using _ = program;
      const ask = async (method: string, path: string, body: string | null) => {
        // Each on a connection of its own.
        const answer = await fetch(`${url}/carrier/rtp${path}`, {
          method,
          body,
          headers: { connection: "close" },
        });
        return { status: answer.status, call: (await answer.json()) as { call_id: string; port: number } };
      };
      const phones: RtpPhone[] = [];
      const calls: { call_id: string; port: number }[] = [];
      for (const session of names(16)) {
        const phone = await RtpPhone.open();
        phones.push(phone);
        const body = JSON.stringify({ session, remote: phone.address, text: TEXT });
        const { status, call } = await ask("POST", "", body);
        expect(status).toBe(201);
        phone.say(call.port, 1);
        calls.push(call);
      }
      const halves = calls.map(({ port }) => (port < from + 32 ? "first" : "second"));
      expect(new Set(halves)).toEqual(new Set(["first", "second"]));
      expect(new Set(calls.map(({ port }) => port)).size).toBe(calls.length);
      for (const [index, phone] of phones.entries()) {
        await until("it is spoken", () => phone.speech.length > 8000, SLOW);
        const { status } = await ask("DELETE", `/${calls[index]?.call_id}`, null);
        expect(status).toBe(200);
        await phone.close();
      }
    });

    test("SIGTERM to one worker alone: another one takes its place", async () => {
      const { program, opsUrl } = await serveTwo();
      await using _ = program;
      const [one = 0] = childrenOf(program);
      process.kill(one, "SIGTERM");
      await until("it is back", () => program.stderr.includes("The worker is back"), SLOW);
      expect(await workersUp(opsUrl)).toEqual({ up: 2, of: 2 });
      expect(isAlive(one)).toBe(false);
    });

    test("no worker outlives the process that started it", async () => {
      const { program } = await serveTwo();
      const children = childrenOf(program);
      expect(children).toHaveLength(2);
      await program[Symbol.asyncDispose]();
      await until("they end", () => !children.some(isAlive), SLOW);
    });

    test("all have one speech service", async () => {
      const served = await serve(["--workers", "2"]);
      await using program = served.program;
      expect(childrenOf(program)).toHaveLength(3);
      using client = await LiveClient.connect(served.url, "/live/s?format=ulaw_8000");
      client.send({ type: "speak", text: "Hello." });
      await until("it is spoken", () => client.has("utterance.done"), SLOW);
    });

    test.each([
      [["--audiosocket-port", "65535"], "expected 65535 at most"],
      [["--rtp-ports", "10000-10001"], "1 even ports, expected one for each of 2 workers"],
      [["--keys-file", "/nowhere"], "/nowhere"],
    ])("with %j it does not start, and says why", async (args, expected) => {
      const ended = await run([
        "serve",
        "--port",
        "0",
        "--workers",
        "2",
        "--upstream-url",
        upstream.url,
        ...args,
      ]);
      expect(ended.code).toBe(2);
      expect(ended.stderr).toContain(expected);
    });

    test("a port that another program has is refused", async () => {
      const port = `${await freePort()}`;
      const one = await serve(["--upstream-url", upstream.url, "--port", port, "--workers", "2"]);
      await using _ = one.program;
      const two = await run(["serve", "--upstream-url", upstream.url, "--port", port, "--workers", "2"]);
      expect(two.code).toBe(3);
    });
  },
);
