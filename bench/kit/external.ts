/**
 * Fan-out servers that others wrote, where they are installed: nginx with Nchan and nats-server. Each is started
 * with a config of its own in a temporary folder, on loopback and free ports, and ended by its process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { wait } from "./monotonic.ts";

const FRAME = Buffer.alloc(160, 0x55);
const FRAME_MS = 20;
const START_DEADLINE_MS = 10_000;
const STOP_DEADLINE_MS = 3000;
const NCHAN_MODULES = [
  "/usr/lib/nginx/modules/ngx_nchan_module.so",
  "/usr/share/nginx/modules/ngx_nchan_module.so",
];
const SBIN_FOLDERS = ["/usr/sbin", "/usr/local/sbin"];

/** A running server with a publisher that sends it a frame every 20 ms once `publish` is called. */
export interface ExternalServer extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
  /** Path that subscribers open, and what they send then. */
  readonly path: string;
  readonly messages: readonly string[];
  /** WebSocket payload bytes of one delivered frame: NATS puts several of its messages into one. */
  readonly payloadBytesPerFrame: number;
  publish(): Promise<void>;
}

export interface ExternalKind {
  readonly name: string;
  /** What to do where it is missing. */
  readonly howTo: string;
  readonly isInstalled: boolean;
  start(): Promise<ExternalServer>;
}

export function nchanKind(): ExternalKind {
  const nginx = findProgram("nginx");
  const module = NCHAN_MODULES.find((path) => existsSync(path));
  return {
    name: "nginx + Nchan",
    howTo: "apt-get install nginx libnginx-mod-nchan",
    isInstalled: nginx !== null && module !== undefined,
    start: () => startNchan(nginx ?? "nginx", module ?? ""),
  };
}

export function natsKind(): ExternalKind {
  const server = findProgram("nats-server");
  return {
    name: "nats-server",
    howTo: "apt-get install nats-server",
    isInstalled: server !== null,
    start: () => startNats(server ?? "nats-server"),
  };
}

async function startNchan(nginx: string, module: string): Promise<ExternalServer> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-bench-nchan-"));
  const port = await freePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `  ${name}_temp_path ${folder}/${name};`)
    .join("\n");
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off;
worker_processes 1;
${process.getuid?.() === 0 ? "user root;" : ""}
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
load_module ${module};
worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  access_log off;
${temporary}
  server {
    listen 127.0.0.1:${port} backlog=4096;
    tcp_nodelay on;
    keepalive_requests 1000000;
    location = /sub { nchan_subscriber websocket; nchan_channel_id audio; nchan_subscriber_first_message newest; }
    location = /pub { nchan_publisher http; nchan_channel_id audio; nchan_message_buffer_length 10; }
  }
}
`,
  );
  const args = ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")];
  const program = await Program.start(nginx, { args, folder, port });
  const post = Buffer.concat([
    Buffer.from(
      `POST /pub HTTP/1.1\r\nHost: bench\r\nContent-Type: application/octet-stream\r\nContent-Length: ${FRAME.length}\r\n\r\n`,
    ),
    FRAME,
  ]);
  return program.serve({
    path: "/sub",
    messages: [],
    payloadBytesPerFrame: FRAME.length,
    message: post,
    publishPort: port,
  });
}

async function startNats(server: string): Promise<ExternalServer> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-bench-nats-"));
  const port = await freePort();
  const publishPort = await freePort();
  writeFileSync(
    join(folder, "nats.conf"),
    `listen: "127.0.0.1:${publishPort}"
ping_interval: "20m"
max_connections: 4096
websocket { listen: "127.0.0.1:${port}", no_tls: true, compression: false }
`,
  );
  const program = await Program.start(server, { args: ["-c", join(folder, "nats.conf")], folder, port });
  return program.serve({
    path: "/",
    messages: ['CONNECT {"verbose":false,"pedantic":false}\r\n', "SUB audio 1\r\n"],
    payloadBytesPerFrame: Buffer.byteLength(`MSG audio 1 ${FRAME.length}\r\n`) + FRAME.length + 2,
    message: Buffer.concat([Buffer.from(`PUB audio ${FRAME.length}\r\n`), FRAME, Buffer.from("\r\n")]),
    greeting: 'CONNECT {"verbose":false,"pedantic":false}\r\n',
    publishPort,
  });
}

interface Service {
  readonly path: string;
  readonly messages: readonly string[];
  readonly payloadBytesPerFrame: number;
  /** One published frame as it goes on the wire. */
  readonly message: Buffer;
  /** First bytes of the publisher. */
  readonly greeting?: string;
  readonly publishPort: number;
}

/** A child process with its temporary folder and its publisher. */
class Program {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #port: number;
  readonly #abandon = (): void => {
    this.#child.kill("SIGTERM");
    rmSync(this.#folder, { recursive: true, force: true });
  };
  #publisher: Socket | null = null;
  #timer: NodeJS.Timeout | null = null;

  private constructor(child: ChildProcess, place: { readonly folder: string; readonly port: number }) {
    this.#child = child;
    this.#folder = place.folder;
    this.#port = place.port;
    // A bench that is told to stop does not unwind; nginx takes its worker along on SIGTERM only.
    process.once("exit", this.#abandon);
  }

  /** Resolves when its port answers. */
  static async start(
    path: string,
    options: { readonly args: readonly string[]; readonly folder: string; readonly port: number },
  ): Promise<Program> {
    const child = spawn(path, [...options.args], { stdio: "ignore" });
    const program = new Program(child, options);
    const ended = new Promise<never>((_, reject) => {
      child.once("error", reject);
      child.once("exit", (code) =>
        reject(new Error(`${path} ended with code ${code}, expected it to listen`)),
      );
    });
    // Awaited only until it listens; its later end is ours.
    ended.catch(() => undefined);
    try {
      await Promise.race([ended, answers(options.port)]);
    } catch (thrown) {
      await program.#stop();
      throw thrown;
    }
    return program;
  }

  serve(service: Service): ExternalServer {
    return {
      pid: this.#child.pid ?? 0,
      port: this.#port,
      path: service.path,
      messages: service.messages,
      payloadBytesPerFrame: service.payloadBytesPerFrame,
      publish: () => this.#publish(service),
      [Symbol.asyncDispose]: () => this.#stop(),
    };
  }

  async #publish(service: Service): Promise<void> {
    const socket = await connected(service.publishPort);
    this.#publisher = socket;
    socket.on("error", () => this.#stopPublishing());
    socket.resume();
    if (service.greeting !== undefined) socket.write(service.greeting);
    const originMs = performance.now();
    let sent = 0;
    this.#timer = setInterval(() => {
      const due = Math.floor((performance.now() - originMs) / FRAME_MS);
      for (; sent < due; sent += 1) socket.write(service.message);
    }, FRAME_MS);
  }

  #stopPublishing(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#publisher?.destroy();
  }

  async #stop(): Promise<void> {
    process.off("exit", this.#abandon);
    this.#stopPublishing();
    if (this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined) {
      const exited = new Promise<void>((resolve) => {
        this.#child.once("exit", () => resolve());
      });
      this.#child.kill("SIGTERM");
      const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_DEADLINE_MS);
      await exited;
      clearTimeout(timer);
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Debian keeps servers in folders that are not on every user's PATH. */
function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? "").split(delimiter), ...SBIN_FOLDERS];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

async function answers(port: number): Promise<void> {
  const endMs = performance.now() + START_DEADLINE_MS;
  for (;;) {
    try {
      (await connected(port)).destroy();
      return;
    } catch (thrown) {
      if (performance.now() > endMs) throw thrown;
      await wait(50);
    }
  }
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
  });
}
