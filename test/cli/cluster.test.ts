/** `voicewire serve --cluster`: programs that are nodes of one cluster, over a real nats-server. */
import { hostname } from "node:os";
import { afterAll, describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { freePort } from "../helpers/free-port.ts";
import { until } from "../helpers/until.ts";
import { endNatsServers, IF_NATS_MISSING, isNatsMissing, NatsServer } from "../kit/nats-server.ts";
import { missingForSpeech, PATIENT, type Program, run, serve } from "./program.ts";

vi.setConfig(PATIENT);
afterAll(endNatsServers);
const missing = missingForSpeech() ?? (isNatsMissing ? IF_NATS_MISSING : undefined);
const SECRET = "s3cr3t-of-the-bus";

/** A client of the native protocol, and what came to it. */
async function connect(url: string, path: string) {
  const socket = new WebSocket(`${url.replace("http", "ws")}${path}`);
  const events: Record<string, unknown>[] = [];
  let audioBytes = 0;
  let closed: string | null = null;
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) audioBytes += data.length;
    else events.push(JSON.parse(data.toString()) as Record<string, unknown>);
  });
  socket.on("close", (_code, reason) => {
    closed = reason.toString();
  });
  const has = (type: string) => events.some((event) => event.type === type);
  await until(`hello of ${path}`, () => has("hello") || closed !== null, { deadlineMs: 20_000 });
  return {
    get audioBytes() {
      return audioBytes;
    },
    get closed() {
      return closed;
    },
    has,
    send: (message: object) => socket.send(JSON.stringify(message)),
    [Symbol.dispose]: () => socket.terminate(),
  };
}

async function expectHeard(speakerUrl: string, listenerUrl: string, session: string): Promise<void> {
  using speaker = await connect(speakerUrl, `/live/${session}?format=none`);
  using listener = await connect(listenerUrl, `/live/${session}?role=listener&format=ulaw_8000`);
  speaker.send({ type: "speak", text: "Hello." });
  await until("it is spoken", () => listener.has("utterance.done"), { deadlineMs: 30_000 });
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
      const one = await serve(["--node-name", "one", "--log-level", "debug"], { VOICEWIRE_CLUSTER: bus });
      await using first = one.program;
      const two = await serve(["--cluster", bus, "--log-level", "debug"]);
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
      const env = { VOICEWIRE_CLUSTER: bus };
      for (const shown of [await run(["serve", "--help"], { env }), await run(["doctor"], { env })]) {
        expect(`${shown.stdout}${shown.stderr}`).not.toContain(SECRET);
      }
    });

    test("a second node of the same name does not start, and the first one goes on", async () => {
      await using server = await NatsServer.start();
      const one = await serve(["--cluster", server.url, "--node-name", "same"]);
      await using _ = one.program;
      const ended = await run(["serve", "--port", "0", "--cluster", server.url, "--node-name", "same"]);
      expect(ended.code).toBe(2);
      expect(ended.stderr).toContain(
        "voicewire: Node same: another living node has this name, choose one for each (node-name)\n",
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

    test("with --start-alone it serves without other nodes, and is one of them once nats-server is there", async () => {
      const port = await freePort();
      const bus = ["--cluster", `nats://127.0.0.1:${port}`, "--start-alone"];
      const one = await serve(bus);
      await using first = one.program;
      expect(first.stderr).toContain("this node is alone until it can");
      using before = await connect(one.url, "/live/before?format=none");
      await expectHeard(one.url, one.url, "alone");
      await using _server = await NatsServer.start({ port });
      const hasCome = (program: Program) => program.stderr.includes("this node is one of several");
      await first.until(() => hasCome(first));
      const two = await serve(bus);
      await using _second = two.program;
      using after = await connect(two.url, "/live/before?role=listener&format=ulaw_8000");
      before.send({ type: "speak", text: "Hello." });
      await until("the speech of a session of before", () => after.has("utterance.done"), {
        deadlineMs: 30_000,
      });
      expect(after.audioBytes).toBeGreaterThan(1000);
    });
  },
);
