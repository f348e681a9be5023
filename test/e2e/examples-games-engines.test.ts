/**
 * The engines' examples: what they read of each event is there in what a gateway sends; and the one for servers without a
 * window is run where its engine is installed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Event } from "../../src/protocol/events.ts";
import { type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples/game-voice");
const GODOT3 = "/usr/bin/godot3-server";

/** Event type -> fields that the example's handler reads of it. */
function fieldsRead(file: string): Map<string, string[]> {
  const code = readFileSync(join(EXAMPLES, file), "utf8");
  const isSharp = file.endsWith(".cs");
  const handlers = isSharp
    ? code.matchAll(/void On(\w+)\(Message message\)([\s\S]*?)(?=\n {4}void |$)/g)
    : code.matchAll(/func _on_(\w+)\(event[^\n]*\n([\s\S]*?)(?=\nfunc |$)/g);
  const name = isSharp ? "message" : "event";
  const read = new Map<string, string[]>();
  for (const [, handler = "", body = ""] of handlers) {
    const type = handler
      .replace(/(?<=[a-z])[A-Z]/g, ".$&")
      .toLowerCase()
      .replace("_", ".");
    // A method of the value is none of its fields.
    const fields = body.matchAll(new RegExp(`\\b${name}\\.(\\w+(?:\\.start_ms)?)`, "g"));
    read.set(type, [...new Set([...fields].map(([, field = ""]) => field))]);
    expect(code).toContain(`"${type}"`);
  }
  return read;
}

function valueAt(event: Event, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], event);
}

describe("the engines' examples", () => {
  let upstream: FakeUpstream;
  let gateway: TestGateway;
  const events = new Map<string, Event>();

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_24000&events=visemes");
    client.send({ type: "speak", text: "A line that is cut off before it is over.", voice_id: "v" });
    await client.until(() => client.frames.length > 5);
    client.send({ type: "interrupt" });
    client.send({ type: "nonsense" });
    await client.next("utterance.done");
    await client.next("error");
    for (const event of client.events) events.set(event.type, event);
    // What only a slow listener gets.
    events.set("gap", { type: "gap", seq: 1, at_ms: 0, frames: 1, ms: 20 });
  });

  afterAll(async () => {
    await gateway?.close();
    await upstream?.[Symbol.asyncDispose]();
  });

  it.each([
    ["godot/voicewire_voice.gd", 6],
    ["godot3/headless.gd", 2],
    ["unity/VoicewireVoice.cs", 6],
  ])("%s reads what there is", (file, handlers) => {
    const read = fieldsRead(file);
    expect(read.size).toBe(handlers);
    for (const [type, fields] of read) {
      const event = events.get(type);
      if (event === undefined) throw new Error(`${file} waits for ${type}, which did not come`);
      expect(fields.length).toBeGreaterThan(0);
      for (const field of fields) expect([type, field, valueAt(event, field)]).not.toContain(undefined);
    }
  });

  it("asks for what the gateway knows", async () => {
    for (const file of ["godot/voicewire_voice.gd", "godot3/headless.gd", "unity/VoicewireVoice.cs"]) {
      const query = /\?(format=[\w&=,-]+)/.exec(readFileSync(join(EXAMPLES, file), "utf8"))?.[1];
      await using client = await TestClient.connect(gateway, `/live/q?${query}`);
      const hello = await client.next("hello");
      expect(hello.ignored).toEqual([]);
      expect(hello.audio).toMatchObject({ codec: "pcm_s16le", sample_rate: 24_000 });
    }
  });

  const missing = existsSync(GODOT3) ? "" : ` (skipped: ${GODOT3} is missing: apt-get install godot3-server)`;
  it.skipIf(missing !== "")(
    `godot3-server says a line and gets frames and mouth shapes${missing}`,
    async () => {
      const child = spawn(GODOT3, ["-s", join(EXAMPLES, "godot3/headless.gd"), `--gateway=${gateway.wsUrl}`]);
      const said: string[] = [];
      child.stdout.on("data", (piece: Buffer) => said.push(piece.toString()));
      await once(child, "close");
      const line =
        said
          .join("")
          .split("\n")
          .find((one) => one.startsWith("{")) ?? "{}";
      const result = JSON.parse(line) as {
        outcome: string;
        frames: number;
        bytes: number;
        visemes: string[];
      };
      expect(result.outcome).toBe("done");
      expect(result.bytes).toBe(result.frames * 960);
      expect(result.visemes).toContain("PP");
    },
  );
});
