/**
 * `GET /live/{session}/captions` (server-sent events), `captions.vtt` and `captions.srt`: a session's captions for pages,
 * players and tools. Who follows them is a listener like any other: the session takes it in, within its limits.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Door } from "../../access/door.ts";
import type { Listener } from "../../delivery/listener.ts";
import { systemClock } from "../../kit/clock.ts";
import type { ParsedSettings, SettingsDefaults } from "../../session/listener-settings.ts";
import type { Session } from "../../session/session.ts";
import { type Answer, Reply } from "../http.ts";
import {
  answerHead,
  enter,
  enterFor,
  joinSession,
  type LiveAsker,
  type LiveCall,
  type LiveDeps,
  liveCallOf,
  sessionFor,
  termsOf,
} from "../live-request.ts";
import { passedQuery } from "../passed-facts.ts";
import { ResponseWriter, type ResponseWriterOptions } from "../players/response-writer.ts";
import { ArrivedAnswer } from "../relayed/arrived-answer.ts";
import { FarListener } from "../relayed/far-listener.ts";
import type { AnswerStream, HostedAnswer, HostedRequest } from "../relayed/hosted-answer.ts";
import { needsInSession, type Routes } from "../routes.ts";
import { CaptionWriter, IGNORING_LISTENER } from "./captions-file.ts";
import { CaptionsListener } from "./captions-listener.ts";
import {
  CAPTION_FILES,
  type CaptionFileName,
  type EventsRequest,
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
  app.get(events, READS, (res, req, caller) => {
    const call = callOf(res, req, { ...options, caller, surface: events });
    new CaptionsResponse(res, call, options).answerEvents();
  });
  app.head(events, READS, (res, req, caller) => {
    const call = callOf(res, req, { ...options, caller, surface: events });
    answerHead(res, { call, ...options }, () => {
      const { joining } = parseEventsRequest(call.query, { ...call, ...options });
      return { joining, headers: headersOf(EVENTS_TYPE) };
    });
  });
  for (const name of CAPTION_FILES) {
    const path = `${events}.${name}`;
    app.get(path, READS, (res, req, caller) => {
      const call = callOf(res, req, { ...options, caller, surface: path });
      new CaptionsResponse(res, call, options).answerFile(name);
    });
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

/** What a session is to a response: one here, or one at another node. */
interface Joined {
  /** The client has taken what waited. */
  drained(): void;
  /** Idempotent. */
  leave(): void;
}

class CaptionsResponse {
  readonly #res: HttpResponse;
  readonly #call: Call;
  readonly #options: CaptionsOptions;
  #body: ResponseWriter | null = null;
  #joined: Joined | null = null;
  /** Ends the connection that the answer is counted as. */
  #leave: () => void = () => undefined;
  #isAborted = false;

  /** To be made before the request's handler returns. */
  constructor(res: HttpResponse, call: Call, options: CaptionsOptions) {
    this.#res = res;
    this.#call = call;
    this.#options = options;
    res.onAborted(() => {
      this.#isAborted = true;
      this.#body?.markAborted();
      this.#leave();
    });
  }

  answerEvents(): void {
    this.#answer(async () => {
      const call = this.#call;
      const { joining, style } = parseEventsRequest(call.query, { ...call, ...this.#options });
      await enterFor(call, joining, this.#options, (place) => {
        if (this.#isAborted) return;
        if (place === "here") this.#followEvents(joining, style);
        else this.#followEventsAt(place.owner, joining);
      });
    });
  }

  answerFile(name: CaptionFileName): void {
    this.#answer(async () => {
      const call = this.#call;
      const request = parseFileRequest(name, call.query, this.#options.defaults);
      await enterFor(call, request.joining, this.#options, (place) => {
        if (this.#isAborted) return;
        if (place === "here") this.#writeFile(request);
        else this.#askForFile(place.owner, request);
      });
    });
  }

  #answer(answer: () => Promise<void>): void {
    const begin = async (): Promise<void> => {
      this.#leave = enter(this.#call, this.#options.door);
      await answer();
    };
    begin().catch((thrown: unknown) => this.#refuse(thrown));
  }

  #followEvents(joining: ParsedSettings, style: EventsRequest["style"]): void {
    const session = sessionFor(this.#call, joining, this.#options);
    session.captionsOf(style);
    const { body, listener } = this.#eventsBody(joining);
    try {
      this.#join(session, listener, joining);
    } catch (thrown) {
      listener.stop();
      throw thrown;
    }
    body.open(headersOf(EVENTS_TYPE));
  }

  #followEventsAt(owner: string, joining: ParsedSettings): void {
    const { body, listener } = this.#eventsBody(joining);
    const { lastEventId } = this.#call;
    const query = this.#call.query.get("last_event_id") ?? "";
    const what = { call: this.#call, joining, http: { lastEventId: lastEventId || query } };
    try {
      this.#joined = FarListener.join({ ...this.#options, owner }, what, {
        listener,
        onJoined: () => body.open(headersOf(EVENTS_TYPE)),
        onRefused: (error) => {
          body.cut();
          this.#refuse(error);
        },
      });
    } catch (thrown) {
      body.cut();
      throw thrown;
    }
  }

  #eventsBody(joining: ParsedSettings) {
    const body = this.#bodyFor(joining, {
      onLost: ({ closeCode, code }) => listener.end(closeCode, code),
      onClosed: () => listener.stop(),
    });
    const listener = new CaptionsListener(body, { clock: systemClock });
    return { body, listener };
  }

  #writeFile(request: FileRequest): void {
    const session = sessionFor(this.#call, request.joining, this.#options);
    if (!request.isLive) {
      this.#leave();
      new Reply(this.#res).send(wholeFile(session, request));
      return;
    }
    let unfollow = (): void => undefined;
    const body = this.#bodyFor(request.joining, { onLost: () => body.cut(), onClosed: () => unfollow() });
    this.#join(session, IGNORING_LISTENER, request.joining);
    unfollow = growFile(body, { request, session, maxOutboxBytes: this.#options.maxOutboxBytes });
  }

  #askForFile(owner: string, request: FileRequest): void {
    const { name, joining } = request;
    const body = this.#bodyFor(joining, { onLost: () => body.cut(), onClosed: () => undefined });
    const { sessionId, caller, address, query } = this.#call;
    const asked = {
      sessionId,
      caller,
      address,
      route: name,
      query: passedQuery(query.toString(), caller),
      body: "",
    };
    const endAndThen = (answer: () => void): void => {
      body.cut();
      if (!this.#isAborted) answer();
    };
    try {
      this.#joined = ArrivedAnswer.ask({ ...this.#options, owner }, asked, {
        stream: body,
        onAnswer: (answer) => endAndThen(() => new Reply(this.#res).send(answer)),
        onRefused: (error) => endAndThen(() => new Reply(this.#res).fail(error)),
      });
    } catch (thrown) {
      body.cut();
      throw thrown;
    }
  }

  #join(session: Session, listener: Listener, joining: ParsedSettings): void {
    const participant = joinSession(session, listener, {
      joining,
      isClosed: () => this.#body?.isClosed === true,
    });
    this.#joined = {
      drained: () => session.drained(participant),
      leave: () => session.leave(participant),
    };
  }

  #bodyFor(
    joining: ParsedSettings,
    { onLost, onClosed }: Pick<ResponseWriterOptions, "onLost" | "onClosed">,
  ): ResponseWriter {
    this.#body = new ResponseWriter({
      res: this.#res,
      clock: systemClock,
      idleSeconds: this.#options.idleSeconds,
      terms: termsOf(this.#call, joining, this.#options),
      onLost,
      onDrained: () => this.#joined?.drained(),
      onClosed: () => {
        this.#leave();
        onClosed();
        this.#joined?.leave();
      },
    });
    return this.#body;
  }

  #refuse(thrown: unknown): void {
    this.#leave();
    if (!this.#isAborted) new Reply(this.#res).fail(thrown);
  }
}

function wholeFile(session: Session, request: FileRequest): Answer {
  const writer = new CaptionWriter(request);
  const { cues } = session.captionsOf(request.style);
  return {
    status: 200,
    contentType: FILE_TYPES[request.name],
    body: writer.header + writer.write(cues),
    headers: SHARED_HEADERS,
  };
}

interface Growing {
  readonly request: FileRequest;
  readonly session: Session;
  readonly maxOutboxBytes: number;
}

/** Writes what there is, and what comes. What it gives ends that (idempotent). */
function growFile(body: AnswerStream, { request, session, maxOutboxBytes }: Growing): () => void {
  const writer = new CaptionWriter(request);
  body.write(writer.header);
  body.open(headersOf(FILE_TYPES[request.name]));
  const unfollow = session.captionsOf(request.style).follow({
    cues: (cues) => {
      body.write(writer.write(cues));
      // A file has no place for a word about it: what is cut is not whole.
      if (body.bufferedBytes > maxOutboxBytes) body.cut();
    },
    end: () => body.end(""),
  });
  if (body.isClosed) unfollow();
  return unfollow;
}

/** For a client of another node. Throws invalid_field, unknown_session, session_limit, listener_limit. */
export function answerHostedFile(
  { query, ...asked }: HostedRequest,
  answer: HostedAnswer,
  options: CaptionsOptions,
): void {
  const name = CAPTION_FILES.find((known) => known === asked.route);
  if (name === undefined) throw new TypeError("It asks for no file");
  const call = { ...asked, query: new URLSearchParams(query), surface: `/live/:session/captions.${name}` };
  const request = parseFileRequest(name, call.query, options.defaults);
  const { joining } = request;
  const session = sessionFor(call, joining, options);
  if (!request.isLive) {
    answer.send(wholeFile(session, request));
    return;
  }
  let unfollow = (): void => undefined;
  const participant = joinSession(session, IGNORING_LISTENER, { joining, isClosed: () => answer.isClosed });
  answer.onClosed = () => {
    unfollow();
    session.leave(participant);
  };
  unfollow = growFile(answer, { request, session, maxOutboxBytes: options.maxOutboxBytes });
}
