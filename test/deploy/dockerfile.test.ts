/** The Dockerfile: what it copies is there, and its health check tells a gateway that runs from one that does not. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { settingsFrom } from "../../src/cli/settings.ts";
import { CertificateFolder } from "../helpers/certificate-files.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";
import { unknownSettings } from "./deploy-files.ts";

const ROOT = new URL("../../", import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, ROOT), "utf8");
/** Its instructions, each in one line. */
const LINES = read("Dockerfile").replaceAll("\\\n", " ").split("\n");

const argumentsOf = (instruction: string): string[] =>
  LINES.filter((line) => line.startsWith(`${instruction} `)).map((line) =>
    line.slice(instruction.length + 1),
  );

function commandOf(instruction: string): string[] {
  const json = /\[.*\]$/.exec(argumentsOf(instruction).at(-1) ?? "")?.[0] ?? "[]";
  return JSON.parse(json) as string[];
}

describe("Dockerfile", () => {
  it("copies files that are there and that .dockerignore does not leave out", () => {
    const ignored = read(".dockerignore").split("\n");
    const sources = argumentsOf("COPY")
      .filter((line) => !line.startsWith("--from"))
      .flatMap((line) => line.split(/\s+/).slice(0, -1));
    expect(sources.length).toBeGreaterThan(5);
    for (const source of sources) {
      const name = source.replace("./", "");
      expect(existsSync(new URL(name, ROOT)), name).toBe(true);
      expect(ignored).not.toContain(name.split("/")[0]);
    }
  });

  it("takes from the build what the program needs when it runs", () => {
    const { files } = JSON.parse(read("package.json")) as { files: string[] };
    const taken = argumentsOf("COPY").join(" ");
    expect(files).toContain("dist");
    for (const name of ["/app/node_modules", "/app/dist", "package.json"]) expect(taken).toContain(name);
  });

  it("runs as a user that is not root, with settings that exist", () => {
    expect(argumentsOf("USER")).toEqual(["node"]);
    const environment = Object.fromEntries(
      argumentsOf("ENV")
        .join(" ")
        .split(/\s+/)
        .map((pair) => pair.split("=") as [string, string]),
    );
    expect(unknownSettings(environment)).toEqual([]);
    expect(settingsFrom({ env: environment }).config).toMatchObject({ host: "0.0.0.0", port: 8080 });
  });

  it("starts the program as `npm start` does", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    expect([...commandOf("ENTRYPOINT"), ...commandOf("CMD")].join(" ")).toBe(scripts.start);
  });

  it.each([false, true])("its health check says whether the gateway runs; TLS: %s", async (isTls) => {
    using files = new CertificateFolder();
    await using gateway = await gatewayAt("http://127.0.0.1:9", isTls ? files.settings : {});
    const { port } = new URL(gateway.url);
    const [program = "", ...args] = commandOf("HEALTHCHECK");
    expect(program).toBe("node");
    const check = async (): Promise<number> => {
      const env = { VOICEWIRE_PORT: port, ...(isTls && { VOICEWIRE_TLS_CERT: "set" }) };
      const child = spawn(process.execPath, args, { stdio: "ignore", env });
      const [code] = (await once(child, "exit")) as [number];
      return code;
    };
    expect(await check()).toBe(0);
    await gateway.close();
    expect(await check()).toBe(1);
  });
});
