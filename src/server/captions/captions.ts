/**
 * `GET /live/{session}/captions` (server-sent events), `captions.vtt` and `captions.srt`: a session's captions for pages,
 * players and tools. Who follows them is a listener like any other: the session takes it in, within its limits.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Door } from "../../access/door.ts";
import { systemClock } from "../../kit/clock.ts";
import type { Participant } from "../../session/connections/participant.ts";
import type { Session } from "../../session/session.ts";
import type { SettingsDefaults } from "../../session/settings.ts";
import { Reply } from "../http.ts";
import {
  answerHead,
  asConnection,
  joinSession,
  type LiveAsker,
  type LiveCall,
  type LiveDeps,
  liveCallOf,
  sessionFor,
  termsOf,
} from "../live-request.ts";
import { ResponseWriter, type ResponseWriterOptions } from "../players/response-writer.ts";
import { needsInSession, type Routes } from "../routes.ts";
import { CaptionWriter, FILE_LISTENER } from "./captions-file.ts";
import { CaptionsListener } from "./captions-listener.ts";
import {
  CAPTION_FILES,
  type CaptionFileName,
  type FileRequest,
  parseEventsRequest,
  parseFileRequest,
} from "./captions-request.ts";

export interface CaptionsOptions extends LiveDeps {
  readonly defaults: SettingsDefaults;
  readonly idleSeconds: number;
  /** Most that waits for one client. */
  readonly maxOutboxBytes: number;
  readonly door: Door;
}

/** `x-accel-buffering`: nginx would keep a body back until it has a buffer full of it. */
const SHARED_HEADERS = {
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
} as const;
const EVENTS_TYPE = "text/event-stream; charset=utf-8";
const FILE_TYPES: Readonly<Record<CaptionFileName, string>> = {
  vtt: "text/vtt; charset=utf-8",
  srt: "application/x-subrip; charset=utf-8",
};

/** Words without sound are less than the sound. */
const READS = needsInSession("captions", "listen");

export function routeCaptions(app: Routes, options: CaptionsOptions): void {
  const events = "/live/:session/captions";
  app.get(events, READS, (res, req, caller) =>
    answering(res, () => {
      const call = callOf(res, req, { ...options, caller, surface: events });
      asConnection(call, options, (leave) => answerEvents(res, { ...call, leave }, options));
    }),
  );
  app.head(events, READS, (res, req, caller) => {
    const call = callOf(res, req, { ...options, caller, surface: events });
    answerHead(res, { call, ...options }, () => {
      const { joining } = parseEventsRequest(call.query, { ...call, ...options });
      return { joining, headers: headersOf(EVENTS_TYPE) };
    });
  });
  for (const name of CAPTION_FILES) {
    const path = `${events}.${name}`;
    app.get(path, READS, (res, req, caller) =>
      answering(res, () => {
        const call = callOf(res, req, { ...options, caller, surface: path });
        asConnection(call, options, (leave) => answerFile(res, { ...call, name, leave }, options));
      }),
    );
    app.head(path, READS, (res, req, caller) => {
      const call = callOf(res, req, { ...options, caller, surface: path });
      answerHead(res, { call, ...options }, () => {
        const { joining } = parseFileRequest(name, call.query, options.defaults);
        return { joining, headers: headersOf(FILE_TYPES[name]) };
      });
    });
  }
}

type Call = LiveCall & { readonly lastEventId: string };

function callOf(res: HttpResponse, req: HttpRequest, asker: LiveAsker): Call {
  return { ...liveCallOf(res, req, asker), lastEventId: req.getHeader("last-event-id") };
}

function headersOf(contentType: string): Record<string, string> {
  return { "content-type": contentType, ...SHARED_HEADERS };
}

function answering(res: HttpResponse, answer: () => void): void {
  try {
    answer();
  } catch (thrown) {
    new Reply(res).fail(thrown);
  }
}

/** Ends the connection that the answer is counted as. */
interface Leaving {
  readonly leave: () => void;
}

function answerEvents(res: HttpResponse, call: Call & Leaving, options: CaptionsOptions): void {
  const { joining, style } = parseEventsRequest(call.query, { ...call, ...options });
  const session = sessionFor(call, joining, options);
  session.captionsOf(style);
  let participant: Participant | null = null;
  const body = bodyOf(res, options, {
    terms: termsOf(call, joining, options),
    onLost: ({ closeCode, code }) => listener.end(closeCode, code),
    onDrained: () => {
      if (participant !== null) session.drained(participant);
    },
    onClosed: () => {
      call.leave();
      listener.stop();
      if (participant !== null) session.leave(participant);
    },
  });
  const listener = new CaptionsListener(body, { epoch: session.epoch, clock: systemClock });
  try {
    participant = joinSession(session, listener, { joining, isClosed: () => body.isClosed });
  } catch (thrown) {
    listener.stop();
    throw thrown;
  }
  body.open(headersOf(EVENTS_TYPE));
}

function answerFile(
  res: HttpResponse,
  call: Call & Leaving & { readonly name: CaptionFileName },
  options: CaptionsOptions,
): void {
  const request = parseFileRequest(call.name, call.query, options.defaults);
  const session = sessionFor(call, request.joining, options);
  if (request.isLive) growFile(res, { request, session, options, call });
  else {
    call.leave();
    const writer = new CaptionWriter(request);
    const cues = session.captionsOf(request.style).cues;
    new Reply(res).send({
      status: 200,
      contentType: FILE_TYPES[request.name],
      body: writer.header + writer.write(cues),
      headers: SHARED_HEADERS,
    });
  }
}

interface Growing {
  readonly request: FileRequest;
  readonly session: Session;
  readonly options: CaptionsOptions;
  readonly call: Call & Leaving;
}

function growFile(res: HttpResponse, { request, session, options, call }: Growing): void {
  const { joining } = request;
  let participant: Participant | null = null;
  let unfollow = (): void => undefined;
  const body = bodyOf(res, options, {
    terms: termsOf(call, joining, options),
    onLost: () => body.cut(),
    onDrained: () => undefined,
    onClosed: () => {
      call.leave();
      unfollow();
      if (participant !== null) session.leave(participant);
    },
  });
  const writer = new CaptionWriter(request);
  body.write(writer.header);
  participant = joinSession(session, FILE_LISTENER, { joining, isClosed: () => body.isClosed });
  body.open(headersOf(FILE_TYPES[request.name]));
  unfollow = session.captionsOf(request.style).follow({
    cues: (cues) => {
      body.write(writer.write(cues));
      // A file has no place for a word about it: what is cut is not whole.
      if (body.bufferedBytes > options.maxOutboxBytes) body.cut();
    },
    end: () => body.end(""),
  });
  if (body.isClosed) unfollow();
}

function bodyOf(
  res: HttpResponse,
  { idleSeconds }: CaptionsOptions,
  handlers: Omit<ResponseWriterOptions, "res" | "clock" | "idleSeconds">,
): ResponseWriter {
  const body = new ResponseWriter({ res, clock: systemClock, idleSeconds, ...handlers });
  res.onAborted(() => body.markAborted());
  return body;
}
