/** The package as a user gets it: its command, its client, a gateway inside a program, and its types. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { missingForSpeech, PATIENT } from "../cli/program.ts";
import { InstalledPackage, otherNode, typeCheck } from "./installed-package.ts";

vi.setConfig(PATIENT);
const missing = process.platform === "win32" ? "Windows starts programs otherwise" : missingForSpeech();

/** The gateway and the client in one program, without a flag of Node. */
const PROGRAM = `
import WebSocket from "ws";
import { GatewayError, setHeapGrowth, startGateway } from "voicewire";
import { connect, VoicewireError } from "voicewire/client";

setHeapGrowth();
const gateway = await startGateway({ port: 0, logLevel: "warn" });
const connection = await connect({ baseUrl: gateway.url, session: "demo", settings: { format: "pcm_16000" }, WebSocket });
let bytes = 0;
connection.onAudio((frame) => { bytes += frame.byteLength; });
const { outcome } = await connection.say("Hello there.");
const refused = await connection.speak("").catch((error) => error);
await connection.close();
await gateway.drain();
await gateway.close();
const wrong = await startGateway({ prot: 0 }).catch((error) => error);
console.log(JSON.stringify({
  node: process.version, outcome, hasAudio: bytes > 16_000,
  refused: [refused instanceof VoicewireError, refused.code],
  wrong: [wrong instanceof GatewayError, wrong.code, wrong.field],
}));
`;

const TYPED = `
import { type Gateway, type GatewayOptions, GatewayError, startGateway } from "voicewire";
import { type Connection, connect, type Event } from "voicewire/client";

const options: GatewayOptions = { port: 0, opsPort: "off", upstreamRegion: "eu", upstreamKey: "k", logLevel: "warn" };
export const gateway: Gateway = await startGateway(options);
export const connection: Connection = await connect({ baseUrl: gateway.url, session: "demo", settings: { events: ["words"] } });
connection.on("words", ({ words }) => words.map((word) => word.text.toUpperCase()));
export const told: Event["type"] = connection.hello.type;
export const code = (error: unknown) => (error instanceof GatewayError && error.code === "port_in_use" ? error.message : "");
// @ts-expect-error: no such setting
export const misspelt: GatewayOptions = { prot: 0 };
// @ts-expect-error: not one of its choices
export const loud: GatewayOptions = { logLevel: "loud" };
`;

describe.skipIf(missing !== undefined)(
  `the package${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let user: InstalledPackage;
    beforeAll(() => {
      user = new InstalledPackage();
      user.write("program.mjs", PROGRAM);
      user.write("typed.ts", TYPED);
    });
    afterAll(() => user[Symbol.dispose]());

    it("installs into an empty folder, with all that its types and its page need and no source maps", () => {
      expect(user.installed).toMatchObject({ status: 0 });
      const inside = user.run("find", ["node_modules/voicewire", "-type", "f"]).stdout.split("\n");
      expect(inside).toContain("node_modules/voicewire/dist/page/index.html");
      expect(inside).toContain("node_modules/voicewire/dist/index.d.ts");
      expect(inside.filter((file) => /\.map$|\/(?:src|test|bench)\//.test(file))).toEqual([]);
    });

    it("runs its command: --help, and a gateway that is healthy and ends in order", async () => {
      expect(user.run("npx", ["--no-install", "voicewire", "--help"])).toMatchObject({
        status: 0,
        stdout: expect.stringContaining("Usage: voicewire COMMAND"),
      });
      const gateway = user.start("node_modules/.bin/voicewire", ["serve", "--port", "0"]);
      const ended = new Promise((resolve) => gateway.once("close", resolve));
      try {
        const url = await new Promise<string>((resolve, reject) => {
          let received = "";
          gateway.stdout?.on("data", (data: Buffer) => {
            received += data;
            const found = /Page {2}(http:\S+)\//.exec(received)?.[1];
            if (found !== undefined) resolve(found);
          });
          gateway.once("close", () => reject(new Error(`The gateway ended: ${received}`)));
        });
        const health = await fetch(`${url}/healthz`);
        expect([health.status, await health.json()]).toMatchObject([200, { status: "ok" }]);
        const page = await fetch(`${url}/`);
        expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
      } finally {
        gateway.kill("SIGTERM");
        expect(await ended).toBe(0);
      }
    });

    const versions = [
      { name: "this Node", node: process.execPath, version: process.version },
      { name: "Node 20.19", node: otherNode("node-20"), version: "v20.19." },
      { name: "Node 22", node: otherNode("node-22"), version: "v22." },
    ];
    for (const { name, node, version } of versions) {
      it.skipIf(node === undefined)(
        `speaks inside a program under ${name}, and the program ends by itself${node === undefined ? " (skipped unless `npm install` was run in test/package)" : ""}`,
        () => {
          const { status, stdout, stderr } = user.run(node ?? "", ["program.mjs"]);
          expect([status, stderr]).toEqual([0, ""]);
          expect(JSON.parse(stdout)).toEqual({
            node: expect.stringContaining(version),
            outcome: "done",
            hasAudio: true,
            refused: [true, "invalid_field"],
            wrong: [true, "invalid_config", "prot"],
          });
        },
      );
    }

    it("runs the example of docs/embedding.md", () => {
      const page = readFileSync(new URL("../../docs/embedding.md", import.meta.url), "utf8");
      user.write("example.mjs", /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? "");
      const { status, stdout } = user.run(process.execPath, ["example.mjs"]);
      expect(status).toBe(0);
      expect(stdout).toMatch(/^0 640\n20 640\n/);
    });

    it("is required by CommonJS, too", () => {
      const code =
        'console.log(typeof require("voicewire").startGateway, typeof require("voicewire/client").connect)';
      expect(
        user.run(otherNode("node-20") ?? process.execPath, ["--input-type=commonjs", "-e", code]),
      ).toEqual({
        status: 0,
        stdout: "function function\n",
        stderr: "",
      });
    });

    it.each([
      ["nodenext", ["--module", "nodenext"]],
      ["bundler", ["--module", "esnext", "--moduleResolution", "bundler"]],
      [
        "bundler, with the types of browsers",
        ["--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2023,dom"],
      ],
    ])("has types for a program with moduleResolution %s", (_, flags) => {
      expect(typeCheck(user, "typed.ts", flags)).toBe("");
    });
  },
);

it("package-lock.json asks for no newer Node than the package does", () => {
  const lock = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")) as {
    packages: Record<string, { engines?: { node?: string } }>;
  };
  const newer = Object.entries(lock.packages).filter(([, { engines }]) => {
    const oldest = /^\s*(?:>=|\^)\s*(\d+)/.exec(engines?.node?.split("||")[0] ?? "")?.[1];
    return Number(oldest ?? 0) > 20;
  });
  expect(newer.map(([name]) => name)).toEqual([]);
});
