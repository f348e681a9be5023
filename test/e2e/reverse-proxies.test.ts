/**
 * The files of examples/proxy/ in front of a gateway: TLS ends at the proxy, WebSockets pass, nothing is held back, and the
 * client's address is believed where the proxy is listed.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ClientRequest, get as getPlain, type IncomingMessage } from "node:http";
import { type RequestOptions, request } from "node:https";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { connect } from "../../src/client/index.ts";
import type { Config } from "../../src/config.ts";
import { missingForSpeech, serve, temporaryFolder } from "../cli/program.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { LISTENER, SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { vendor } from "../helpers/scripted-vendor.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { RENEWED_CERTIFICATE, RENEWED_KEY, trustTestCertificate } from "../helpers/test-certificate.ts";
import { until } from "../helpers/until.ts";

interface Proxy extends AsyncDisposable {
  readonly port: number;
  readonly plainPort: number;
  readonly url: string;
  readonly wsUrl: string;
}

interface ProxyPaths {
  readonly folder: string;
  readonly port: number;
  readonly plainPort: number;
  readonly gatewayPort: number;
}

interface ProxyKind {
  readonly name: string;
  /** What the file becomes on this machine: each pattern stands in it once. */
  replacements(paths: ProxyPaths): readonly (readonly [was: string, becomes: string])[];
  readonly file: string;
  command(config: string, folder: string): readonly [program: string, ...args: string[]];
}

const NGINX: ProxyKind = {
  name: "nginx",
  file: "nginx.conf",
  replacements: ({ folder, port, plainPort, gatewayPort }) => [
    ["user www-data;\n", ""],
    ["worker_rlimit_nofile 65536;\n", ""],
    ["worker_connections 32768;", "worker_connections 256;"],
    ["pid /run/nginx.pid;", `pid ${folder}/nginx.pid;`],
    ["error_log /var/log/nginx/error.log", `error_log ${folder}/error.log`],
    ["access_log /var/log/nginx/access.log", `access_log ${folder}/access.log`],
    [
      "http {\n",
      `http {\n${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
        .join("\n")}\n`,
    ],
    ["listen 80;", `listen 127.0.0.1:${plainPort};`],
    ["listen 443 ssl;", `listen 127.0.0.1:${port} ssl;`],
    ["/etc/ssl/voicewire/fullchain.pem", `${folder}/fullchain.pem`],
    ["/etc/ssl/voicewire/privkey.pem", `${folder}/privkey.pem`],
    ["server 127.0.0.1:8080;", `server 127.0.0.1:${gatewayPort};`],
  ],
  // One process: none can stay behind.
  command: (config, folder) => [
    "nginx",
    ...["-p", folder, "-e", `${folder}/start.log`, "-c", config, "-g", "daemon off; master_process off;"],
  ],
};

const HAPROXY: ProxyKind = {
  name: "haproxy",
  file: "haproxy.cfg",
  replacements: ({ folder, port, plainPort, gatewayPort }) => [
    ["maxconn 20000", "maxconn 256"],
    ["bind :80\n", `bind 127.0.0.1:${plainPort}\n`],
    ["bind :443 ssl", `bind 127.0.0.1:${port} ssl`],
    ["/etc/ssl/voicewire/voice.example.com.pem", `${folder}/voice.example.com.pem`],
    ["server gateway 127.0.0.1:8080 check", `server gateway 127.0.0.1:${gatewayPort} check`],
  ],
  command: (config) => ["haproxy", "-db", "-f", config],
};

const HAPROXY_V2: ProxyKind = {
  ...HAPROXY,
  name: "haproxy with the PROXY protocol",
  replacements: (paths) =>
    HAPROXY.replacements(paths).map(([was, becomes]) =>
      was.startsWith("server ") ? [was, `${becomes} send-proxy-v2`] : [was, becomes],
    ),
};

/** Debian has them where only root looks. */
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

function isInstalled(program: string): boolean {
  return spawnSync(program, ["-v"], { stdio: "ignore", env: { PATH } }).error === undefined;
}

/** Of tests that ran into their deadline, too. */
const running = new Set<ChildProcess>();

async function startProxy(kind: ProxyKind, gatewayPort: number): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-proxy-"));
  const [port, plainPort] = [await freePort(), await freePort()];
  let config = readFileSync(new URL(`../../examples/proxy/${kind.file}`, import.meta.url), "utf8");
  for (const [was, becomes] of kind.replacements({ folder, port, plainPort, gatewayPort })) {
    expect(config.split(was), `"${was}" in ${kind.file}`).toHaveLength(2);
    config = config.replace(was, () => becomes);
  }
  writeFileSync(join(folder, kind.file), config);
  writeFileSync(join(folder, "fullchain.pem"), RENEWED_CERTIFICATE);
  writeFileSync(join(folder, "privkey.pem"), RENEWED_KEY);
  writeFileSync(join(folder, "voice.example.com.pem"), RENEWED_CERTIFICATE + RENEWED_KEY);
  const [program, ...args] = kind.command(join(folder, kind.file), folder);
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { PATH } });
  running.add(child);
  let said = "";
  for (const output of [child.stdout, child.stderr]) {
    output.on("data", (data: Buffer) => {
      said += data.toString();
    });
  }
  const end = async (): Promise<void> => {
    await ended(child);
    rmSync(folder, { recursive: true });
  };
  try {
    while (!(await isOpen(port))) {
      if (child.exitCode !== null) throw new Error(`${kind.name} ended: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  } catch (error) {
    await end();
    throw error;
  }
  return {
    port,
    plainPort,
    url: `https://127.0.0.1:${port}`,
    wsUrl: `wss://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: end,
  };
}

async function ended(child: ChildProcess): Promise<void> {
  running.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connectTcp(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    // Refused: it is not up yet.
    return false;
  } finally {
    socket.destroy();
  }
}

const TRUSTED: Partial<Config> = { trustedProxies: "127.0.0.1", allowedHosts: "voice.example.com" };
const KINDS = [
  [NGINX, {}],
  [HAPROXY, {}],
  [HAPROXY_V2, { proxyProtocol: true }],
] as const satisfies readonly (readonly [ProxyKind, Partial<Config>])[];

async function answerTo(url: string, options: RequestOptions = {}): Promise<IncomingMessage> {
  const sent = request(url, { agent: false, ...options }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return answer;
}

let trust: Disposable;
beforeAll(() => {
  trust = trustTestCertificate();
});
afterAll(async () => {
  trust[Symbol.dispose]();
  await Promise.all([...running].map(ended));
});

for (const [kind, settings] of KINDS) {
  const [program] = kind.command("", "");
  const isMissing = !isInstalled(program) && process.env.CI === undefined;
  const trusted: Partial<Config> = { ...TRUSTED, ...settings };

  describe.skipIf(isMissing)(`${kind.name}${isMissing ? " (skipped: it is not installed)" : ""}`, () => {
    it("passes WebSockets, and what listeners hear and see as it comes", async () => {
      await using upstream = await startFakeUpstream(speaking({ msPerChar: 40 }));
      await using gateway = await gatewayAt(upstream.url, { trimMs: 0, ...trusted });
      await using proxy = await startProxy(kind, gateway.port);
      await using client = await TestClient.connect(proxy, "/live/s?format=pcm_16000&events=words");
      const open = await Promise.all(
        ["captions", "audio.wav"].map((what) => answerTo(`${proxy.url}/live/s/${what}`)),
      );
      const got = open.map((answer) => {
        const pieces: Buffer[] = [];
        answer.on("data", (data: Buffer) => pieces.push(data));
        answer.on("error", () => undefined);
        return { answer, pieces };
      });
      client.send({ type: "speak", text: "This is a sentence. ".repeat(4) });
      await client.next("words");
      // Both go on as long as the session does: what is held back until they end never comes.
      const [captions, sound] = got;
      await until("a caption", () => Buffer.concat(captions?.pieces ?? []).includes("This is a sentence"), {
        deadlineMs: 15_000,
      });
      await until("sound behind the file's head", () => Buffer.concat(sound?.pieces ?? []).length > 100, {
        deadlineMs: 15_000,
      });
      await client.next("utterance.done");
      expect(client.frames.length).toBeGreaterThan(100);
      for (const { answer } of got) {
        expect(answer.complete).toBe(false);
        answer.destroy();
      }
    });

    it("ends TLS, passes the name on, and says nothing of the server library", async () => {
      await using upstream = await startFakeUpstream();
      await using gateway = await gatewayAt(upstream.url, trusted);
      await using proxy = await startProxy(kind, gateway.port);
      const answer = await answerTo(`${proxy.url}/healthz`, { headers: { host: "voice.example.com" } });
      expect(answer.statusCode).toBe(200);
      expect(answer.headers["strict-transport-security"]).toBe("max-age=31536000");
      expect(answer.headers).not.toHaveProperty("uwebsockets");
      const foreign = await answerTo(`${proxy.url}/healthz`, { headers: { host: "evil.example" } });
      expect(foreign.statusCode).toBe(421);
      const lie = { host: "evil.example", "x-forwarded-host": "voice.example.com" };
      expect((await answerTo(`${proxy.url}/healthz`, { headers: lie })).statusCode).toBe(421);
      const own = { host: "voice.example.com:8443", origin: "https://voice.example.com:8443" };
      expect((await answerTo(`${proxy.url}/healthz`, { headers: own })).statusCode).toBe(200);
      const page = { host: "voice.example.com", origin: "https://evil.example" };
      expect((await answerTo(`${proxy.url}/healthz`, { headers: page })).statusCode).toBe(403);
      for (const response of [answer, foreign]) response.resume();
      const plain = getPlain(`http://127.0.0.1:${proxy.plainPort}/live/s?a=b`, {
        headers: { host: "voice.example.com" },
        agent: false,
      });
      const [redirect] = (await once(plain, "response")) as [IncomingMessage];
      redirect.resume();
      expect(redirect.statusCode).toBe(301);
      expect(redirect.headers.location).toBe("https://voice.example.com/live/s?a=b");
    });

    it.skipIf(missingForSpeech() !== undefined)(
      "is in front of the built program with keys, which is started as the file says",
      async () => {
        using keys = new TestKeys();
        using folder = temporaryFolder();
        const config = readFileSync(new URL(`../../examples/proxy/${kind.file}`, import.meta.url), "utf8");
        const [, flags = ""] = /voicewire serve (.*)/.exec(config) ?? [];
        const audit = folder.file("audit.jsonl");
        const { program, url } = await serve([
          ...flags.replace("keys.json", keys.path).split(" "),
          ...("proxyProtocol" in settings ? ["--proxy-protocol"] : []),
          ...["--audit-log", audit],
        ]);
        await using _ = program;
        await using proxy = await startProxy(kind, Number(new URL(url).port));
        const headers = { host: "voice.example.com", authorization: `Bearer ${tokenFor(LISTENER)}` };
        const ask = (path: string, options: RequestOptions = {}) =>
          answerTo(`${proxy.url}${path}`, { headers, localAddress: "127.0.0.2", ...options });

        expect((await ask("/v1/voices", { headers: { host: headers.host } })).statusCode).toBe(401);
        const speaker = await connect({
          baseUrl: proxy.url,
          session: "s",
          settings: { format: "pcm_16000" },
          WebSocket,
          token: tokenFor(SPEAKER),
        });
        const captions = await ask("/live/s/captions");
        expect(captions.statusCode).toBe(200);
        let shown = "";
        captions.setEncoding("utf8").on("data", (text: string) => {
          shown += text;
        });
        captions.on("error", () => undefined);
        let frames = 0;
        speaker.onAudio(() => {
          frames += 1;
        });
        expect(await speaker.say("Hello through the proxy.")).toMatchObject({ outcome: "done" });
        expect(frames).toBeGreaterThan(25);
        await until("the caption", () => shown.includes("Hello through the proxy."));
        captions.destroy();
        await speaker.close();
        // Who came from where: by the proxy's word, and not by its own address.
        const lines = readFileSync(audit, "utf8");
        expect(lines).toMatch(/"audit":"refused".*"surface":"\/v1\/\*","address":"127\.0\.0\.2"/);
        expect(lines).toMatch(/"audit":"admitted".*"address":"127\.0\.0\.2"/);
      },
    );

    it.each([
      [
        "are told apart where the proxy is listed, whatever they say of themselves",
        trusted,
        ["taken", "taken", "refused"],
      ],
      [
        "are all the proxy where it is not",
        { allowedHosts: "voice.example.com" },
        ["taken", "refused", "refused"],
      ],
    ] as const)("clients %s", async (_name, gatewaySettings, expected) => {
      let uploads = 0;
      await using upstream = await vendor((req) => {
        req.on("error", () => undefined).resume();
        uploads += 1;
      });
      await using gateway = await gatewayAt(upstream.url, { ...gatewaySettings, maxUploadsPerClient: 1 });
      await using proxy = await startProxy(kind, gateway.port);
      const open: ClientRequest[] = [];
      const outcomes: string[] = [];
      for (const [index, localAddress] of ["127.0.0.2", "127.0.0.3", "127.0.0.2"].entries()) {
        const before = uploads;
        let status: number | undefined;
        const sent = request(`${proxy.url}/v1/voices/add`, {
          method: "POST",
          localAddress,
          agent: false,
          headers: {
            "content-type": "multipart/form-data; boundary=xyz",
            "content-length": 1000,
            "x-forwarded-for": `192.0.2.${index}`,
          },
        });
        sent.on("error", () => undefined);
        sent.on("response", (answer) => {
          answer.on("error", () => undefined).resume();
          status = answer.statusCode;
        });
        // Its end never comes: a proxy that waits for it passes nothing on.
        sent.write("--xyz");
        open.push(sent);
        await until("the upload, or its refusal", () => uploads > before || status !== undefined);
        outcomes.push(status === 429 ? "refused" : "taken");
      }
      expect(outcomes).toEqual(expected);
      for (const sent of open) sent.destroy();
    });
  });
}
