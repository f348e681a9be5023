/** All that listens on the gateway's public port: the live sockets, their HTTP twins, the proxy and the page. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Caller } from "../access/caller.ts";
import type { OriginRules } from "../access/origin-rules.ts";
import { GatewayError } from "../errors.ts";
import { asyncApi } from "../protocol/asyncapi.ts";
import { type Command, parseCommand } from "../protocol/commands.ts";
import { parseJson } from "../protocol/read-json.ts";
import { speak } from "../session/commands.ts";
import type { Calls } from "../telephony/calls.ts";
import { routeCaptions } from "./captions/captions.ts";
import type { CarrierAuth } from "./carriers/carrier-auth.ts";
import { routeCarriers } from "./carriers/carrier-socket.ts";
import { routeJambonzTts } from "./carriers/jambonz-tts.ts";
import { pathPart, Reply, readBody } from "./http.ts";
import { readiness } from "./operations.ts";
import { loadPage } from "./page.ts";
import { routeAudio } from "./players/audio-stream.ts";
import { type OpenAiSpeechOptions, routeOpenAiSpeech } from "./players/openai-speech.ts";
import { type ProxyOptions, routeProxy } from "./proxy/proxy.ts";
import { VoiceNames, type VoiceNamesOptions } from "./proxy/voice-names.ts";
import { type CertifiedPort, type PublicAppOptions, publicApp } from "./public-app.ts";
import { requestAddress } from "./request-address.ts";
import { CheckedRoutes, type MountedRoute, needsInSession, type Routes } from "./routes.ts";
import { checkCommand, JOINING_ACTIONS } from "./sockets/live-access.ts";
import { LiveConnections } from "./sockets/live-connections.ts";
import { type LiveSocketOptions, liveSocket } from "./sockets/live-socket.ts";
import { relayHost } from "./sockets/relayed-clients.ts";
import { routeVendorSockets, type VendorSocketOptions } from "./sockets/vendor-socket.ts";
import { audited } from "./speech-access.ts";
import { routeTokens } from "./tokens.ts";

export type VendorOptions = Pick<
  VendorSocketOptions,
  "upstream" | "clock" | "counters" | "maxSockets" | "firstAudioMs"
> &
  Pick<OpenAiSpeechOptions, "defaultModel"> &
  Pick<VoiceNamesOptions, "get">;

export interface ServerOptions extends LiveSocketOptions, ProxyOptions, PublicAppOptions {
  /** Which web pages may use the port. */
  readonly origins: OriginRules;
  /** Folder of the built page. */
  readonly pageFolder: string;
  /** Of the program. */
  readonly version: string;
  /** All phone calls of the gateway, those of other ports as well. */
  readonly calls: Calls;
  /** Whom carriers' sockets are taken from. */
  readonly carrierAuth: CarrierAuth;
  /** What the vendor's and OpenAI's surfaces need, which speak to the upstream themselves. */
  readonly vendor: VendorOptions;
  /** Calls on ports of their own, which are set up here. */
  readonly callPorts: readonly { route(app: Routes): void }[];
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
  await options.cluster?.serve(relayHost(live, options.door));
  routes.ws("/live/:session", needsInSession(...JOINING_ACTIONS), liveSocket(live, options));
  routeCarriers(routes, options);
  const voices = new VoiceNames(options.vendor);
  const speech = { ...options, ...options.vendor, voices };
  const jambonzTts = routeJambonzTts(routes, speech);
  for (const ports of options.callPorts) ports.route(routes);
  routeCommands(routes, options);
  routeAudio(routes, options);
  routeCaptions(routes, options);
  const vendorSockets = routeVendorSockets(routes, { ...options, ...options.vendor });
  routeOpenAiSpeech(routes, speech);
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

function routeCommands(app: Routes, options: ServerOptions): void {
  app.post("/live/:session/speak", needsInSession("speak"), (res, req, caller) => {
    answerCommand(res, { req, options, type: "speak", caller });
  });
  app.post("/live/:session/interrupt", needsInSession("interrupt"), (res, req, caller) => {
    answerCommand(res, { req, options, type: "interrupt", caller });
  });
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

interface CommandCall {
  readonly req: HttpRequest;
  readonly options: ServerOptions;
  readonly type: "speak" | "interrupt";
  readonly caller: Caller;
}

function answerCommand(res: HttpResponse, call: CommandCall): void {
  const { req, options, type, caller } = call;
  const { door } = options;
  const sessionId = pathPart(req);
  const address = requestAddress(res, req, door.proxyTrust);
  const asking = { door, caller, surface: `/live/:session/${type}`, address, sessionId };
  const reply = new Reply(res);
  readBody(res, options.maxMessageBytes)
    .then((body) => {
      const parsed = parseCommand(withType(body, type));
      audited(asking, () => carryOut(reply, parsed.command, { sessionId, caller, address, options }));
    })
    .catch((thrown: unknown) => reply.fail(thrown));
}

interface CarryingOut extends Pick<CommandCall, "caller" | "options"> {
  readonly sessionId: string;
  readonly address: string;
}

function carryOut(reply: Reply, asked: Command, { sessionId, caller, address, options }: CarryingOut): void {
  if (asked.type === "refresh") return;
  const command = checkCommand(caller, sessionId, asked);
  const session = options.sessions.get(sessionId);
  if (command.type === "speak") {
    if (session.connectionCount === 0) throw nobodyThere(session.id);
    const { limits } = options.door;
    const budget = limits.speechBudget(() => caller);
    const account = { budget, subject: limits.upstreamSubject(caller, address) };
    const { utterance, ahead } = speak(session, command, account);
    session.textChanged();
    reply.json(202, { session: session.id, utterance_id: utterance.id, ahead });
  } else if (command.type === "interrupt") {
    const receipts = session.utterances.interrupt(command.utterance_id, command.keep_ms);
    reply.json(receipts === null ? 202 : 200, { session: session.id, interrupted: receipts ?? [] });
  }
}

function nobodyThere(id: string): GatewayError {
  return new GatewayError(
    "unknown_session",
    `Nobody is connected to session ${id}: it would speak to no one`,
    {
      field: "session",
      retryAfterMs: 1000,
    },
  );
}

/** The body of a POST is the command without its type, which the path says. */
function withType(body: string, type: string): string {
  if (body.trim() === "") return JSON.stringify({ type });
  const value = parseJson(body, "Body");
  if (typeof value !== "object" || value === null || Array.isArray(value)) return body;
  return JSON.stringify({ ...value, type });
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
  app.any("/metrics", "known", (res) => {
    const where =
      "Metrics are on the operations port (settings ops-host and ops-port), which serve prints at its start";
    new Reply(res).fail(new GatewayError("not_found", where));
  });
}

/** Describes the native socket, as /openapi.json does the speech service. */
function routeDescription(app: Routes, version: string): void {
  const document = JSON.stringify(asyncApi(version));
  app.getAndHead("/asyncapi.json", "known", (res) => {
    new Reply(res).send({ status: 200, contentType: "application/json", body: document });
  });
}

function routePage(app: Routes, folder: string): void {
  const answers = loadPage(folder);
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
