/** `POST /live/{session}/speak` and `interrupt`: commands of those who have no socket. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Caller } from "../access/caller.ts";
import { GatewayError } from "../errors.ts";
import { readTraceparent, type TraceContext, writeTraceparent } from "../kit/traceparent.ts";
import { type Command, parseCommand } from "../protocol/commands.ts";
import { parseJson } from "../protocol/read-json.ts";
import { speak } from "../session/carry-out.ts";
import { enterSession } from "../session/place.ts";
import { pathPart, Reply, readBody } from "./http.ts";
import type { LiveDeps } from "./live-request.ts";
import { ArrivedAnswer } from "./relayed/arrived-answer.ts";
import type { HostedAnswer, HostedRequest } from "./relayed/hosted-answer.ts";
import { requestAddress } from "./request-address.ts";
import { needsInSession, type Routes } from "./routes.ts";
import { checkCommand } from "./sockets/live-access.ts";
import { audited } from "./speech-access.ts";

export interface CommandOptions extends LiveDeps {
  readonly maxMessageBytes: number;
}

type CommandType = "speak" | "interrupt";

export function routeCommands(app: Routes, options: CommandOptions): void {
  for (const type of ["speak", "interrupt"] as const) {
    app.post(`/live/:session/${type}`, needsInSession(type), (res, req, caller) => {
      answerCommand(res, { req, options, type, caller });
    });
  }
}

interface CommandCall {
  readonly req: HttpRequest;
  readonly options: CommandOptions;
  readonly type: CommandType;
  readonly caller: Caller;
}

function answerCommand(res: HttpResponse, { req, options, type, caller }: CommandCall): void {
  const sessionId = pathPart(req);
  const traceparent = readTraceparent(req.getHeader("traceparent"));
  const address = requestAddress(res, req, options.door.proxyTrust);
  const reply = new Reply(res);
  readBody(res, options.maxMessageBytes)
    .then((text) => {
      const asked = {
        sessionId,
        caller,
        address,
        route: type,
        query: "",
        body: withType(text, type, traceparent),
      };
      const command = commandOf(asked, options);
      return enterSession(options.cluster, { sessionId, mayOpen: false, mayMove: false }, (place) => {
        if (place === "here") reply.json(...answerOf(command, asked, options));
        else ask({ ...options, owner: place.owner }, asked, reply);
      });
    })
    .catch((thrown: unknown) => reply.fail(thrown));
}

function ask(at: Parameters<typeof ArrivedAnswer.ask>[0], asked: HostedRequest, reply: Reply): void {
  ArrivedAnswer.ask(at, asked, {
    stream: null,
    onAnswer: (answer) => reply.send(answer),
    onRefused: (error) => reply.fail(error),
  });
}

/** For a client of another node. Throws what its answer is to be. */
export function answerHostedCommand(
  asked: HostedRequest,
  answer: HostedAnswer,
  options: CommandOptions,
): void {
  answer.json(...answerOf(commandOf(asked, options), asked, options));
}

/** As the caller may have it. Throws what reading it throws, forbidden. */
function commandOf(
  { sessionId, caller, address, route, body }: HostedRequest,
  { door }: CommandOptions,
): Command {
  const { command } = parseCommand(body);
  if (command.type === "refresh") throw new TypeError("The path names another command");
  const asking = { door, caller, surface: `/live/:session/${route}`, address, sessionId };
  return audited(asking, () => checkCommand(caller, sessionId, command));
}

type StatusAndBody = readonly [status: number, body: object];

function answerOf(
  command: Command,
  { sessionId, caller, address, route }: HostedRequest,
  { sessions, door }: CommandOptions,
): StatusAndBody {
  const session = sessions.get(sessionId);
  if (command.type === "speak") {
    if (session.connectionCount === 0) throw nobodyThere(session.id);
    const { limits } = door;
    const budget = limits.speechBudget(() => caller);
    const payer = { budget, subject: limits.upstreamSubject(caller, address) };
    const asking = { door, caller, surface: `/live/:session/${route}`, address, sessionId };
    const { utterance, ahead } = audited(asking, () => speak(session, command, payer));
    session.textChanged();
    return [202, { session: session.id, utterance_id: utterance.id, ahead }];
  }
  if (command.type !== "interrupt") throw new TypeError("The path names another command");
  const receipts = session.interruptions.interrupt(command.utterance_id, command.keep_ms);
  return [receipts === null ? 202 : 200, { session: session.id, interrupted: receipts ?? [] }];
}

function nobodyThere(id: string): GatewayError {
  return new GatewayError(
    "unknown_session",
    `Nobody is connected to session ${id}: it would speak to no one`,
    { field: "session", retryAfterMs: 1000 },
  );
}

/** The body of a POST is the command without its type, which the path says; a header may say in what trace it stands. */
function withType(body: string, type: CommandType, trace: TraceContext | null): string {
  if (body.trim() === "") return JSON.stringify({ type });
  const value = parseJson(body, "Body");
  if (typeof value !== "object" || value === null || Array.isArray(value)) return body;
  const traced = trace === null || type !== "speak" ? {} : { traceparent: writeTraceparent(trace) };
  return JSON.stringify({ ...traced, ...value, type });
}
