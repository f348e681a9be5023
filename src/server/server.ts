/** All that listens on the gateway's public port: the live sockets, their HTTP twins, the proxy and the page. */
import { join } from "node:path";
import type { OriginRules } from "../access/origin-rules.ts";
import { GatewayError } from "../errors.ts";
import { asyncApi } from "../protocol/asyncapi.ts";
import type { Calls } from "../telephony/calls.ts";
import { answerHostedFile, routeCaptions } from "./captions/captions.ts";
import type { CarrierAuth } from "./carriers/carrier-auth.ts";
import { routeCarriers } from "./carriers/carrier-socket.ts";
import { routeJambonzTts } from "./carriers/jambonz-tts.ts";
import { answerHostedCommand, routeCommands } from "./command-routes.ts";
import { Reply } from "./http.ts";
import { readiness } from "./operations.ts";
import { loadPage } from "./page.ts";
import { routeAudio } from "./players/audio-stream.ts";
import { type OpenAiSpeechOptions, routeOpenAiSpeech } from "./players/openai-speech.ts";
import { type ProxyOptions, routeProxy } from "./proxy/proxy.ts";
import type { VoiceNames } from "./proxy/voice-names.ts";
import { type CertifiedPort, type PublicAppOptions, publicApp } from "./public-app.ts";
import { takeInCalls } from "./relayed/far-calls.ts";
import { type HostedAnswer, type HostedRequest, takeInRequests } from "./relayed/hosted-answer.ts";
import { relayHost, takeInLive } from "./relayed/relay-host.ts";
import { CheckedRoutes, type MountedRoute, needsInSession, type Routes } from "./routes.ts";
import { JOINING_ACTIONS } from "./sockets/live-access.ts";
import { LiveConnections } from "./sockets/live-connections.ts";
import { type LiveSocketOptions, liveSocket } from "./sockets/live-socket.ts";
import { routeVendorSockets, type VendorSocketOptions } from "./sockets/vendor-socket.ts";
import { routeTokens } from "./tokens.ts";
import { routeVoices, type VoicesOptions } from "./voices.ts";

export type VendorOptions = Pick<
  VendorSocketOptions,
  "upstream" | "clock" | "counters" | "maxSockets" | "firstAudioMs" | "tracer"
> &
  Pick<OpenAiSpeechOptions, "defaultModel" | "ownVoices"> &
  Pick<VoicesOptions, "offered"> & { readonly voices: VoiceNames };

export interface ServerOptions extends LiveSocketOptions, ProxyOptions, PublicAppOptions {
  /** Which web pages may use the port. */
  readonly origins: OriginRules;
  /** Folder of the built page. */
  readonly pageFolder: string;
  /** The program's version. */
  readonly version: string;
  /** All phone calls of the gateway, those of other ports as well. */
  readonly calls: Calls;
  /** Whom carriers' sockets are taken from. */
  readonly carrierAuth: CarrierAuth;
  /** What the vendor's and OpenAI's surfaces need, which speak to the upstream themselves. */
  readonly vendor: VendorOptions;
  /** Calls on ports of their own, which are set up here. */
  readonly callPorts: readonly CallPorts[];
}

interface CallPorts {
  route(app: Routes): void;
  /** What other nodes ask of it. Default: nothing. */
  answerHosted?(request: HostedRequest, answer: HostedAnswer): void;
}

export interface RunningServer extends CertifiedPort {
  /** What it answers, and what each route asks of who sends a request. */
  readonly routes: readonly MountedRoute[];
}

/** Listens. Rejects with port_in_use, invalid_config. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const app = publicApp(options);
  const routes = new CheckedRoutes(app.routes, options);
  const live = new LiveConnections(options);
  const takeIn = {
    client: takeInLive(live, options.door),
    request: takeInRequests((request, answer) => answerHosted(request, answer, options)),
    call: takeInCalls(options.calls, options.log),
  };
  await options.cluster?.serve(relayHost(takeIn, options));
  routes.ws("/live/:session", needsInSession(...JOINING_ACTIONS), liveSocket(live, options));
  routeCarriers(routes, options);
  const speech = { ...options, ...options.vendor };
  const jambonzTts = routeJambonzTts(routes, speech);
  for (const ports of options.callPorts) ports.route(routes);
  routeCommands(routes, options);
  routePreflight(routes);
  routeAudio(routes, options);
  routeCaptions(routes, options);
  const vendorSockets = routeVendorSockets(routes, { ...options, ...options.vendor });
  routeOpenAiSpeech(routes, speech);
  routeVoices(routes, speech);
  routeTokens(routes, options);
  routeProxy(routes, options);
  routeHealth(routes, options);
  routeDescription(routes, options.version);
  routePage(routes, options.pageFolder);
  routes.any("/*", "known", (res, req) => {
    const where = `${req.getMethod().toUpperCase()} ${req.getUrl()}`;
    new Reply(res).fail(new GatewayError("not_found", `No such path: ${where.slice(0, 200)}`));
  });
  const listener = await app.listen();
  return {
    ...listener,
    routes: routes.mounted,
    close: () => {
      vendorSockets.close();
      jambonzTts.close();
      // Before the sockets: a speaker that waits behind its old connection is in no session yet, and hears of the end here.
      options.scheduler.close();
      listener.close();
    },
  };
}

/** What browsers ask before they send a request of another origin. */
function routePreflight(app: Routes): void {
  app.options("/*", "anybody", (res, req) => {
    const isProxied = /^\/v[12]\//.test(req.getUrl());
    new Reply(res).send({
      status: 204,
      contentType: "text/plain",
      body: "",
      headers: {
        "access-control-allow-methods": isProxied
          ? "GET, POST, PUT, PATCH, DELETE, OPTIONS"
          : "GET, POST, OPTIONS",
        "access-control-allow-headers": "*",
        "access-control-max-age": "600",
      },
    });
  });
}

/** A request that arrived at another node, for a session of this one. Throws what its answer is to be. */
function answerHosted(request: HostedRequest, answer: HostedAnswer, options: ServerOptions): void {
  if (request.route === "rtp") {
    for (const ports of options.callPorts) ports.answerHosted?.(request, answer);
    return;
  }
  const isCommand = request.route === "speak" || request.route === "interrupt";
  (isCommand ? answerHostedCommand : answerHostedFile)(request, answer, options);
}

/** For load balancers, which ask where their callers are: without version or details. */
function routeHealth(app: Routes, { sessions }: ServerOptions): void {
  app.getAndHead("/healthz", "anybody", (res) =>
    new Reply(res).json(200, { status: "ok", server: "voicewire" }),
  );
  app.getAndHead("/readyz", "anybody", (res) => {
    const { status, body } = readiness(sessions);
    new Reply(res).json(status, body);
  });
  for (const [path, what] of [
    ["/metrics", "Metrics are"],
    ["/admin", "The live view is"],
  ] as const) {
    app.any(path, "known", (res) => {
      const where = `${what} on the operations port (settings ops-host and ops-port), which serve prints at its start`;
      new Reply(res).fail(new GatewayError("not_found", where));
    });
  }
}

/** Describes the native socket, as /openapi.json does the speech service. */
function routeDescription(app: Routes, version: string): void {
  const document = JSON.stringify(asyncApi(version));
  app.getAndHead("/asyncapi.json", "known", (res) => {
    new Reply(res).send({ status: 200, contentType: "application/json", body: document });
  });
}

function routePage(app: Routes, folder: string): void {
  const answers = new Map([
    ...loadPage(folder),
    ...loadPage(join(folder, "replay"), { at: "/replay", scripts: "'self'" }),
  ]);
  for (const [path, answer] of answers) app.getAndHead(path, "anybody", (res) => new Reply(res).send(answer));
  if (answers.size > 0) return;
  app.getAndHead("/", "anybody", (res) => {
    new Reply(res).send({
      status: 503,
      contentType: "text/plain; charset=utf-8",
      body: "The page has not been built: run `npm run build`\n",
    });
  });
}
