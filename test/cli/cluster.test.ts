/** `voicewire serve --cluster`: programs that are nodes of one cluster, over a real nats-server. */
import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { connect } from "../../src/client/index.ts";
import type { Word } from "../../src/protocol/events.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { until } from "../helpers/until.ts";
import { endNatsServers, IF_NATS_MISSING, isNatsMissing, NatsServer } from "../kit/nats-server.ts";
import { LiveClient, SLOW } from "./live-client.ts";
import { eventsIn, missingForSpeech, PATIENT, Program, run, type Served, serve } from "./program.ts";

vi.setConfig(PATIENT);
const missing = missingForSpeech() ?? (isNatsMissing ? IF_NATS_MISSING : undefined);
const FRAME_MS = 20;
const SECRET = "s3cr3t-of-the-bus";

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 100 }));
});
afterAll(async () => {
  await endNatsServers();
  await upstream.close();
});

/** All nodes have one upstream: a speech service of its own would take each most of its start. */
function speechOf(env: Readonly<Record<string, string>>): Record<string, string> {
  return { VOICEWIRE_UPSTREAM_URL: upstream.url, VOICEWIRE_VOICE: "v", ...env };
}

function serveNode(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Served> {
  return serve(args, speechOf(env));
}

async function expectHeard(speakerUrl: string, listenerUrl: string, session: string): Promise<void> {
  using speaker = await LiveClient.connect(speakerUrl, `/live/${session}?format=none`);
  using listener = await LiveClient.connect(listenerUrl, `/live/${session}?role=listener&format=ulaw_8000`);
  speaker.send({ type: "speak", text: "Hello." });
  await until("it is spoken", () => listener.has("utterance.done"), SLOW);
  expect(listener.audioBytes).toBeGreaterThan(1000);
}

describe.skipIf(missing !== undefined)(
  `voicewire serve --cluster${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  { concurrent: true },
  () => {
    test("a listener at one node hears a speaker at another; no node shows the bus's password", async () => {
      await using server = await NatsServer.start({
        config: `authorization { user: "me", password: "${SECRET}" }`,
      });
      const bus = `nats://me:${SECRET}@127.0.0.1:${server.port}`;
      const one = await serveNode(["--node-name", "one", "--log-level", "debug"], { VOICEWIRE_CLUSTER: bus });
      await using first = one.program;
      const two = await serveNode(["--cluster", bus, "--log-level", "debug"]);
      await using second = two.program;
      expect(first.stdout.toString()).toMatch(/^ {2}Node {2}one$/m);
      const host = hostname()
        .replaceAll(/[^\w-]/g, "-")
        .slice(0, 48);
      expect(second.stdout.toString()).toMatch(new RegExp(`^ {2}Node {2}${host}-[0-9a-f]{8}$`, "m"));
      await expectHeard(one.url, two.url, "one-to-two");
      await expectHeard(two.url, one.url, "two-to-one");
      for (const { program } of [one, two]) program.child.kill("SIGTERM");
      for (const program of [first, second]) {
        const { code, stdout, stderr } = await program.ended;
        expect(code).toBe(0);
        expect(`${stdout}${stderr}`).not.toContain(SECRET);
      }
      const env = speechOf({ VOICEWIRE_CLUSTER: bus });
      for (const shown of [await run(["serve", "--help"], { env }), await run(["doctor"], { env })]) {
        expect(`${shown.stdout}${shown.stderr}`).not.toContain(SECRET);
      }
    });

    test("doctor says whether the bus is reached, who is there, and names no credentials", async () => {
      await using server = await NatsServer.start({
        config: `authorization { user: "me", password: "${SECRET}" }`,
      });
      const host = `127.0.0.1:${server.port}`;
      const bus = `nats://me:${SECRET}@${host}`;
      const node = await serveNode(["--node-name", "here"], { VOICEWIRE_CLUSTER: bus });
      await using _node = node.program;
      const doctor = async (cluster: string, ...flags: string[]) => {
        const env = speechOf({ VOICEWIRE_CLUSTER: cluster });
        const { stdout } = await run(["doctor", "--json", "--port", "0", ...flags], { env });
        const { checks }: { checks: { name: string; status: string; detail: string; fix?: string }[] } =
          JSON.parse(stdout.toString());
        return checks.find(({ name }) => name === "cluster");
      };
      const other = await doctor(bus, "--node-name", "there");
      expect(other?.status).toBe("ok");
      expect(other?.detail).toMatch(
        new RegExp(`^nats-server \\d[\\d.]+ at ${host}, with JetStream; nodes: here$`),
      );
      expect(JSON.stringify(other)).not.toContain(SECRET);
      expect(await doctor(bus, "--node-name", "here")).toMatchObject({ status: "warn" });
      const wrong = await doctor(`nats://ann:wrongpassword@${host}`);
      expect(wrong).toMatchObject({
        status: "fail",
        detail: expect.stringContaining("refuses the credentials"),
      });
      expect(JSON.stringify(wrong)).not.toContain("wrongpassword");
      expect(await doctor("nats://127.0.0.1:9")).toMatchObject({ status: "fail" });
      expect(await doctor("")).toMatchObject({ status: "ok", detail: "none: this gateway is alone" });
    });

    test("a node may be several workers: each of them and every other node reach its sessions", async () => {
      await using server = await NatsServer.start();
      const one = await serveNode(["--cluster", server.url, "--node-name", "many", "--workers", "2"]);
      await using _one = one.program;
      const two = await serveNode(["--cluster", server.url]);
      await using _two = two.program;
      expect(one.program.stdout.toString()).toMatch(/^ {2}Node {2}many$/m);
      for (const session of ["a", "b", "c"]) {
        await expectHeard(one.url, two.url, `from-${session}`);
        await expectHeard(two.url, one.url, `to-${session}`);
      }
    });

    test("the client at another node than its session hears each word once, and of no error, where that is killed", async () => {
      await using server = await NatsServer.start();
      const one = await serveNode(["--cluster", server.url]);
      await using owner = one.program;
      const two = await serveNode(["--cluster", server.url]);
      await using _two = two.program;
      using opener = await LiveClient.connect(one.url, "/live/kept?format=none");
      const way = { baseUrl: two.url, session: "kept", reconnect: true, WebSocket };
      const connection = await connect({ ...way, settings: { format: "ulaw_8000" } });
      expect(connection.hello.epoch).toBe(opener.events[0]?.epoch);
      const errors: string[] = [];
      connection.on("error", ({ code }) => errors.push(code));
      const told: Word[] = [];
      connection.on("words", (event) => told.push(...event.words));
      let endMs = 0;
      connection.onAudio((_, { atMs }) => {
        endMs = atMs + FRAME_MS;
      });
      const heard: Word[] = [];
      const back = new Promise<boolean>((resolve) => {
        connection.on("reconnected", ({ takenOver }) => {
          heard.push(...told.splice(0).filter((word) => word.end_ms <= endMs));
          resolve(takenOver);
        });
      });
      const words = Array.from({ length: 10 }, (_, index) => `word${String.fromCharCode(97 + index)}`);
      const said = connection.say(words.join(" "));
      await until("two words", () => told.length > 2, SLOW);
      owner.child.kill("SIGKILL");
      expect(await back).toBe(true);
      expect((await said).outcome).toBe("done");
      expect([...heard, ...told].map(({ text }) => text)).toEqual(words);
      expect(errors).toEqual([]);
      await connection.close();
    });

    test("say at a node that is deployed has said all, and is told of no error", async () => {
      await using server = await NatsServer.start();
      const one = await serveNode(["--cluster", server.url]);
      await using owner = one.program;
      const two = await serveNode(["--cluster", server.url]);
      await using _two = two.program;
      const say = ["say", "--url", one.url, "--session", "deployed", "--json", "One and two and three."];
      await using speaker = new Program(say);
      await speaker.until(() => speaker.stdout.includes(`"type":"words"`));
      owner.child.kill("SIGTERM");
      const { code, stdout, stderr } = await speaker.ended;
      expect([code, stderr]).toEqual([0, ""]);
      expect(eventsIn(stdout)).toContainEqual(
        expect.objectContaining({ type: "utterance.done", outcome: "done" }),
      );
    });

    test("a second node of the same name does not start, and the first one goes on", async () => {
      await using server = await NatsServer.start();
      const one = await serveNode(["--cluster", server.url, "--node-name", "same"]);
      await using _ = one.program;
      const ended = await run(["serve", "--port", "0", "--cluster", server.url, "--node-name", "same"]);
      expect(ended.code).toBe(2);
      expect(ended.stderr).toContain(
        "voicewire: Node same: another living node has this name, choose one for each (node-name) (node_name_taken)\n",
      );
      expect((await fetch(`${one.url}/readyz`)).status).toBe(200);
    });

    test("where no nats-server can be reached it does not start, and says what to do", async () => {
      const url = `nats://me:${SECRET}@127.0.0.1:${await freePort()}`;
      const ended = await run(["serve", "--port", "0", "--cluster", url]);
      expect(ended.code).toBe(4);
      expect(ended.stderr).toContain("no connection to nats-server: see that it runs");
      expect(ended.stderr).toContain("start with --start-alone");
      expect(ended.stderr).not.toContain(SECRET);
    });

    test.each([
      ["--cluster", `http://me:${SECRET}@127.0.0.1`, "nats://[user:password@]host[:port]"],
      ["--node-name", "a b", "1 to 64 letters"],
      ["--node-url", "a.example.com", "https://a.voice.example.com"],
      ["--cluster-name", "a b", "1 to 32 letters"],
    ])("%s %j: does not start, and says what is expected", async (flag, value, expected) => {
      // The last of two flags counts.
      const ended = await run(["serve", "--port", "0", "--cluster", "nats://127.0.0.1:1", flag, value]);
      expect(ended.code).toBe(2);
      expect(ended.stderr).toContain(expected);
      expect(ended.stderr).not.toContain(SECRET);
    });

    test("with --start-alone the workers of a machine are not alone from each other", async () => {
      const bus = ["--cluster", `nats://127.0.0.1:${await freePort()}`, "--start-alone", "--workers", "2"];
      const one = await serveNode(bus);
      await using _ = one.program;
      for (const session of ["a", "b", "c", "d"]) await expectHeard(one.url, one.url, session);
    });

    test("with --start-alone it serves without other nodes, and is one of them once nats-server is there", async () => {
      const port = await freePort();
      const bus = ["--cluster", `nats://127.0.0.1:${port}`, "--start-alone"];
      const one = await serveNode(bus);
      await using first = one.program;
      expect(first.stderr).toContain("this node is alone until it can");
      using before = await LiveClient.connect(one.url, "/live/before?format=none");
      await expectHeard(one.url, one.url, "alone");
      const opsUrl = /Ops {3}(http:\S+)\/metrics\n/.exec(first.stdout.toString())?.[1] ?? "";
      const readiness = async (): Promise<unknown> => (await fetch(`${opsUrl}/readyz`)).json();
      expect(await readiness()).toMatchObject({ status: "ready", bus: "lost" });
      await using _server = await NatsServer.start({ port });
      const hasCome = (program: Program) => program.stderr.includes("this node is one of several");
      await first.until(() => hasCome(first));
      expect(await readiness()).toMatchObject({ status: "ready", bus: "up" });
      const two = await serveNode(bus);
      await using _second = two.program;
      using after = await LiveClient.connect(two.url, "/live/before?role=listener&format=ulaw_8000");
      before.send({ type: "speak", text: "Hello." });
      await until("the speech of a session of before", () => after.has("utterance.done"), SLOW);
      expect(after.audioBytes).toBeGreaterThan(1000);
    });
  },
);
