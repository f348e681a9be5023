/**
 * Zero retention: words, keys and tokens that occur nowhere else go through a running program, and are then looked for in every
 * log line, metric and file, and in its memory.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ACTIONS, type Grants } from "../../src/access/grants.ts";
import { missingForSpeech, PATIENT, type Served, serve } from "../cli/program.ts";
import { SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { TestClient } from "../helpers/start-gateway.ts";

vi.setConfig(PATIENT);

const missing = missingForSpeech();

/** Said to the gateway in different ways; letters only, so that no number of ours is taken for one. */
const TEXTS = {
  spoken: "Xylographic walruses hum.",
  streamed: "Quixotic zephyrs vex.",
  overHttp: "Jocular gnomes waltz.",
  proxied: "Brisk vodka fjords.",
  replaced: "Zigzagging oryxes.",
  malformed: "Wobbly kumquat.",
  refused: "Grumpy axolotl.",
  resumed: "Puzzled yetis wander through the quiet valley for a very long time before they sleep.",
};
const EVERYTHING: Grants = { sessions: ["*"], allow: ACTIONS };
const SNAPSHOT = /\.heapsnapshot$/;

describe.skipIf(missing !== undefined)(
  `a gateway that retains nothing${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    const keys = new TestKeys({ server: { grants: EVERYTHING } });
    const folder = mkdtempSync(join(tmpdir(), "voicewire-canaries-"));
    const tokens: string[] = [];
    let served: Served;
    let metrics = "";

    const fresh = (vw: object = SPEAKER): string => {
      const token = tokenFor(vw, { claims: { jti: `t${tokens.length}` } });
      tokens.push(token);
      return token;
    };

    beforeAll(async () => {
      served = await serve(
        [
          "--keys-file",
          keys.path,
          "--data",
          join(folder, "data"),
          "--audit-log",
          join(folder, "audit.jsonl"),
          "--grace-ms",
          "200",
          "--log-level",
          "debug",
        ],
        { NODE_OPTIONS: `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${folder}` },
      );
      await sayEverything(served.url, keys.key, fresh);
      metrics = await metricsOf(served, keys.key);
      await untilNobodySpeaks(served, keys.key);
      await takeSnapshots(served, folder);
    });

    afterAll(async () => {
      await served?.program[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
      keys[Symbol.dispose]();
    });

    const secrets = (): [string, string][] => [
      ...Object.entries(TEXTS),
      ["the key", keys.key],
      // Without its header, which all tokens of a key have in common.
      ...tokens.map((token, index): [string, string] => [`token ${index}`, token.split(".")[2] ?? ""]),
    ];

    const expectNone = (where: string, content: string, names = secrets()): void => {
      const found = names.filter(([, secret]) => content.includes(secret)).map(([name]) => name);
      expect(found, where).toEqual([]);
    };

    it("has none of it in its log, not even at the level debug", () => {
      const { stdout, stderr } = served.program;
      expect(stderr).toContain("Utterance over");
      expectNone("log", `${stdout}${stderr}`);
    });

    it("has who came and who was refused in its audit log", () => {
      const lines = readFileSync(join(folder, "audit.jsonl"), "utf8").trim().split("\n");
      const events = lines.map((line) => JSON.parse(line) as { audit: string; reason?: string });
      expect(events.filter(({ audit }) => audit === "admitted").length).toBeGreaterThan(4);
      const reasons = events.filter(({ audit }) => audit === "refused").map(({ reason }) => reason);
      // A priority above the token's, a session that is none of its own, and a token that was changed.
      expect(reasons).toEqual(["forbidden", "forbidden", "bad_signature"]);
    });

    it("has none of it in its metrics", () => {
      expect(metrics).toContain("voicewire_utterances_done_total");
      expectNone("metrics", metrics);
    });

    it("has none of it in its files", () => {
      const files = (readdirSync(folder, { recursive: true }) as string[])
        .map((name) => join(folder, name))
        .filter((path) => statSync(path).isFile() && !SNAPSHOT.test(path));
      expect(files.some((path) => path.includes("voicewire.db"))).toBe(true);
      for (const path of files) expectNone(path, readFileSync(path, "latin1"));
    });

    it("has none of it in its memory once the sessions have ended", () => {
      const snapshots = readdirSync(folder).filter((name) => SNAPSHOT.test(name));
      expect(snapshots.length).toBe(1);
      for (const name of snapshots) {
        const content = readFileSync(join(folder, name), "utf8");
        expect(content).toContain("voicewire_frames_sent_total");
        expectNone(name, content);
      }
    });
  },
);

/** All ways in: what is spoken, streamed, cut and refused. */
async function sayEverything(url: string, key: string, fresh: (vw?: object) => string): Promise<void> {
  const gateway = { wsUrl: url.replace("http", "ws") };
  const noLogging = { enable_logging: false };
  const join = async (query: string, token: string): Promise<TestClient> => {
    const headers = { authorization: `Bearer ${token}` };
    const client = await TestClient.connect(gateway, `/live/canary?format=ulaw_8000&${query}`, { headers });
    await client.next("hello");
    return client;
  };
  const post = async (path: string, body: object, token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    await answer.arrayBuffer();
    return answer.status;
  };
  {
    await using client = await join("pace=burst&events=words,cues", fresh());
    client.send({ type: "speak", utterance_id: "a", text: TEXTS.spoken, ...noLogging });
    client.send({ type: "text", utterance_id: "b", text: TEXTS.streamed, ...noLogging });
    client.send({ type: "end", utterance_id: "b" });
    const replacements = [{ from: "beast", to: TEXTS.replaced }];
    client.send({ type: "speak", utterance_id: "c", text: "The beast.", replacements, ...noLogging });
    client.send(`{ "type": "speak", "text": "${TEXTS.malformed}`);
    client.send({ type: "speak", text: TEXTS.refused, priority: 50, ...noLogging });
    client.send({ type: TEXTS.refused });
    expect(await post("/live/canary/speak", { text: TEXTS.overHttp, ...noLogging }, fresh())).toBe(202);
    await client.next("utterance.done", 4);
    await client.next("error", 3);
  }
  {
    await using client = await join("events=words", fresh());
    client.send({ type: "speak", utterance_id: "d", text: TEXTS.resumed, ...noLogging });
    await client.next("words");
    client.send({ type: "interrupt" });
    await client.next("interrupted");
    client.send({ type: "resume" });
    await client.next("utterance.resumed");
  }
  const { voices } = (await (await fetch(`${url}/v1/voices`, { headers: { "xi-api-key": key } })).json()) as {
    voices: { voice_id: string }[];
  };
  const path = `/v1/text-to-speech/${voices[0]?.voice_id ?? ""}?enable_logging=false`;
  expect(await post(path, { text: TEXTS.proxied }, key)).toBe(200);
  // Refused: for what it allows, and because it is no token of ours.
  expect(
    await post("/live/canary/speak", { text: TEXTS.refused }, fresh({ ...SPEAKER, sessions: ["x"] })),
  ).toBe(403);
  expect(await post("/live/canary/speak", { text: TEXTS.refused }, `${fresh()}x`)).toBe(401);
}

async function metricsOf({ program }: Served, key: string): Promise<string> {
  const url = /(http:\S+\/metrics)/.exec(program.stdout.toString())?.[1] ?? "";
  return await (await fetch(url, { headers: { authorization: `Bearer ${key}` } })).text();
}

/** The sessions are over: that is `grace-ms` after the last connection has left. */
async function untilNobodySpeaks(served: Served, key: string): Promise<void> {
  const endMs = performance.now() + 30_000;
  while (!(await metricsOf(served, key)).includes("\nvoicewire_sessions 0\n")) {
    if (performance.now() > endMs) throw new Error("A session does not end");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function takeSnapshots({ program }: Served, folder: string): Promise<void> {
  // What sockets have read last is let go of with their next message, or when they have been idle for a while.
  await new Promise((resolve) => setTimeout(resolve, 5000));
  program.child.kill("SIGUSR2");
  let size = -1;
  await program.until(() => {
    const names = readdirSync(folder).filter((name) => SNAPSHOT.test(name));
    const now = names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    const isWritten = now > 0 && now === size;
    size = now;
    return isWritten;
  });
}
