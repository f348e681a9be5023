/** The vendor's surfaces on an app of their own, over a real upstream client; and a client that keeps all it hears. */
import { App, type us_listen_socket, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";
import { once } from "node:events";
import WebSocket from "ws";
import { readProxyTrust } from "../../src/access/client-address.ts";
import type { Door } from "../../src/access/door.ts";
import { ByteRoom } from "../../src/kit/byte-room.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { type Counters, createCounters } from "../../src/metrics/counters.ts";
import { type OpenAiSpeechOptions, routeOpenAiSpeech } from "../../src/server/players/openai-speech.ts";
import { routeProxy } from "../../src/server/proxy/proxy.ts";
import { PassedPaths } from "../../src/server/proxy/proxy-paths.ts";
import { VoiceNames, type VoiceNamesOptions } from "../../src/server/proxy/voice-names.ts";
import { CheckedRoutes } from "../../src/server/routes.ts";
import { FairScheduler } from "../../src/server/sockets/fair-scheduler.ts";
import {
  routeVendorSockets,
  type VendorSocketOptions,
  type VendorSockets,
} from "../../src/server/sockets/vendor-socket.ts";
import { createUpstream } from "../../src/upstream/regional-upstream.ts";
import type { UpstreamClient } from "../../src/upstream/upstream-client.ts";
import { OPEN_CHECKS, OPEN_DOOR } from "../helpers/open-door.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";

export interface VendorApp extends AsyncDisposable {
  readonly url: string;
  readonly wsUrl: string;
  readonly upstream: UpstreamClient;
  readonly counters: Counters;
  readonly sockets: VendorSockets;
}

export interface VendorAppOptions {
  readonly door?: Door;
  /** "": the client's own goes on. */
  readonly upstreamKey?: string;
  /** The setting `proxy-paths`. */
  readonly passedPaths?: string;
  readonly sockets?: Partial<VendorSocketOptions>;
  readonly openai?: Partial<Pick<OpenAiSpeechOptions, "defaultModel"> & Pick<VoiceNamesOptions, "voices">>;
}

/** `limits.timingHoldMs` is long here: how long a machine takes must not decide what a test sees. */
export async function startVendorApp(
  upstreamUrl: string,
  options: VendorAppOptions = {},
): Promise<VendorApp> {
  const upstream = createUpstream({
    baseUrl: upstreamUrl,
    key: options.upstreamKey ?? "gateway-key",
    maxConnections: 32,
    maxQueued: 64,
    timeoutMs: 15_000,
    patienceMs: 20_000,
    failoverMs: 4000,
  });
  const counters = createCounters();
  const shared = { upstream, clock: systemClock, counters, log: watchedLog, firstAudioMs: 0 };
  const app = App();
  const { door = OPEN_DOOR } = options;
  const routes = new CheckedRoutes(app, { ...OPEN_CHECKS, door });
  const { limits, ...sockets } = options.sockets ?? {};
  const routed = routeVendorSockets(routes, {
    ...shared,
    maxMessageBytes: 65_536,
    maxOutboxBytes: 262_144,
    idleSeconds: 30,
    maxSockets: 100,
    door,
    scheduler: new FairScheduler({
      clock: systemClock,
      counters,
      between: () => undefined,
      room: new ByteRoom(Number.POSITIVE_INFINITY),
    }),
    ...sockets,
    limits: { timingHoldMs: 10_000, ...limits },
  });
  const { defaultModel = "", voices = {} } = options.openai ?? {};
  routeOpenAiSpeech(routes, {
    ...shared,
    door,
    voices: new VoiceNames({ ...shared, voices, get: (path) => upstream.get(path) }),
    idleSeconds: 30,
    defaultModel,
  });
  routeProxy(routes, {
    door,
    passesFaults: false,
    passedPaths: new PassedPaths(options.passedPaths ?? ""),
    forward: (request, handlers) => upstream.forward(request, handlers),
    maxUploadsPerClient: 4,
    proxyTrust: readProxyTrust({ trustedProxies: "", proxyProtocol: false }),
    clock: systemClock,
    counters,
  });
  let listener: us_listen_socket | undefined;
  const port = await new Promise<number>((resolve, reject) => {
    app.listen("127.0.0.1", 0, (socket) => {
      if (socket === false) {
        reject(new Error("Can't listen"));
        return;
      }
      listener = socket;
      resolve(us_socket_local_port(socket));
    });
  });
  return {
    url: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    upstream,
    counters,
    sockets: routed,
    async [Symbol.asyncDispose]() {
      routed.close();
      if (listener !== undefined) us_listen_socket_close(listener);
      app.close();
      await upstream.close();
    },
  };
}

export interface Timing {
  readonly chars: string[];
  readonly charStartTimesMs?: number[];
  readonly charDurationsMs?: number[];
  readonly char_start_times_ms?: number[];
  readonly char_durations_ms?: number[];
}

/** Any message of the vendor's sockets. */
export interface Heard {
  readonly audio?: string | null;
  readonly isFinal?: boolean | null;
  readonly is_final?: boolean;
  readonly is_final_audio_for_turn?: boolean;
  readonly alignment?: Timing | null;
  readonly normalizedAlignment?: Timing | null;
  readonly contextId?: string;
  readonly context_id?: string;
  readonly error?: string;
  readonly message?: string;
  readonly code?: number;
  readonly param?: string;
}

export class VendorClient implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly heard: Heard[] = [];
  end: { readonly code: number; readonly reason: string } | null = null;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data: Buffer, isBinary) => {
      if (isBinary) throw new Error("The vendor's sockets have no binary messages");
      this.heard.push(JSON.parse(data.toString()) as Heard);
    });
    socket.on("close", (code, reason) => {
      this.end = { code, reason: reason.toString() };
    });
    socket.on("error", () => undefined);
  }

  static async connect(
    app: VendorApp,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<VendorClient> {
    const client = new VendorClient(new WebSocket(app.wsUrl + path, { headers }));
    await once(client.socket, "open");
    return client;
  }

  send(...messages: readonly (object | string)[]): void {
    for (const message of messages) {
      this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
    }
  }

  of(contextId: string): Heard[] {
    return this.heard.filter((one) => one.contextId === contextId || one.context_id === contextId);
  }

  async until(what: string, isTrue: () => boolean): Promise<void> {
    try {
      await until(what, isTrue, { deadlineMs: 10_000 });
    } catch (thrown) {
      const got = this.heard.map((one) => JSON.stringify({ ...one, audio: one.audio?.length }).slice(0, 200));
      throw new Error(`${String(thrown)}; heard ${got.join("\n")}; end ${JSON.stringify(this.end)}`);
    }
  }

  async final(contextId?: string): Promise<void> {
    const isFinal = (one: Heard) => one.isFinal === true || one.is_final === true;
    await this.until("the final message", () =>
      (contextId === undefined ? this.heard : this.of(contextId)).some(isFinal),
    );
  }

  async untilClosed(): Promise<{ readonly code: number; readonly reason: string }> {
    await this.until("the close", () => this.end !== null);
    return this.end ?? { code: 0, reason: "" };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.terminate();
    await this.until("the close", () => this.end !== null);
  }
}

export function audioOf(heard: readonly Heard[]): Buffer {
  return Buffer.concat(heard.map(({ audio }) => Buffer.from(audio ?? "", "base64")));
}

/** The characters of all messages in order. */
export function charsOf(heard: readonly Heard[]): string {
  return heard.map(({ alignment }) => alignment?.chars.join("") ?? "").join("");
}
