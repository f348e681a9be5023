/**
 * `GET /live/{session}/audio.ogg` (`.wav`, `.pcm`, `.ulaw`, `.mp3`): a session's audio as one endless file, for any
 * player. The response is a listener like any other: the session takes it in, within its limits and by its policy.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import {
  CONTAINERS,
  type ContainerName,
  createLiveContainer,
} from "../../audio/containers/live-container.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import { systemClock } from "../../kit/clock.ts";
import type { Participant } from "../../session/connections/participant.ts";
import type { Session } from "../../session/session.ts";
import type { Sessions } from "../../session/sessions.ts";
import type { SettingsDefaults } from "../../session/settings.ts";
import { corsHeaders } from "../cors.ts";
import { Reply } from "../http.ts";
import type { Routes } from "../routes.ts";
import { decoded } from "../sockets/live-socket.ts";
import { AudioListener } from "./audio-listener.ts";
import { type AudioRequest, parseAudioRequest } from "./audio-request.ts";
import { SilenceFiller } from "./silence-filler.ts";

/**
 * MP3 streams of the whole gateway: each has an encoder of its own in the thread that serves everybody, which takes
 * 2.5 % of a core (measured).
 */
const MAX_MP3_STREAMS = 8;

export interface AudioStreamOptions {
  readonly sessions: Sessions;
  readonly defaults: SettingsDefaults;
  readonly idleSeconds: number;
}

export function routeAudio(app: Routes, options: AudioStreamOptions): void {
  const mp3Streams = new Places(MAX_MP3_STREAMS);
  for (const name of CONTAINERS) {
    const path = `/live/:session/audio.${name}`;
    app.get(path, (res, req) => new AudioResponse(res, { ...options, mp3Streams }).answer(name, callOf(req)));
    app.head(path, (res, req) => answerHead(res, name, callOf(req), options));
  }
}

/** What is read of a request before its callback returns. */
interface Call {
  readonly sessionId: string;
  readonly query: URLSearchParams;
}

function callOf(req: HttpRequest): Call {
  return {
    sessionId: decoded(req.getParameter(0) ?? ""),
    query: new URLSearchParams(req.getQuery() ?? ""),
  };
}

/** A number of places that are taken and given back. */
class Places {
  readonly #limit: number;
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns what gives the place back, once. Throws listener_limit. */
  take(): () => void {
    if (this.#taken >= this.#limit) {
      throw new GatewayError(
        "listener_limit",
        `Gateway is full: ${this.#limit} MP3 streams, which is the limit; audio.ogg has none of its own`,
        { retryAfterMs: 5000 },
      );
    }
    this.#taken += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#taken -= 1;
      isHeld = false;
    };
  }
}

class AudioResponse {
  readonly #res: HttpResponse;
  readonly #options: AudioStreamOptions & { readonly mp3Streams: Places };
  /** Gives back what the response has taken. */
  #release: () => void = () => undefined;
  #listener: AudioListener | null = null;
  #isAborted = false;

  constructor(res: HttpResponse, options: AudioStreamOptions & { readonly mp3Streams: Places }) {
    this.#res = res;
    this.#options = options;
    res.onAborted(() => {
      this.#isAborted = true;
      this.#listener?.markAborted();
    });
  }

  answer(name: ContainerName, call: Call): void {
    this.#start(name, call).catch((thrown: unknown) => {
      this.#release();
      if (!this.#isAborted) new Reply(this.#res).fail(thrown);
    });
  }

  async #start(name: ContainerName, call: Call): Promise<void> {
    const request = parseAudioRequest(name, call.query, this.#options.defaults);
    sessionFor(call, request, this.#options);
    if (name === "mp3") this.#release = this.#options.mp3Streams.take();
    const container = await createLiveContainer(request);
    // It may have ended while an encoder was made.
    if (this.#isAborted) this.#release();
    else this.#join(sessionFor(call, request, this.#options), request, container);
  }

  #join(
    session: Session,
    request: AudioRequest,
    container: Awaited<ReturnType<typeof createLiveContainer>>,
  ): void {
    const { settings } = request.joining;
    let participant: Participant | null = null;
    const listener = new AudioListener({
      res: this.#res,
      container,
      clock: systemClock,
      idleSeconds: this.#options.idleSeconds,
      isFilled: request.wantsSilence,
      onFrames: (frames) => filler?.note(frames),
      onDrained: () => {
        if (participant !== null) session.drained(participant);
      },
      onClosed: () => {
        filler?.stop();
        this.#release();
        if (participant !== null) session.leave(participant);
      },
    });
    const filler = request.wantsSilence
      ? new SilenceFiller({
          clock: systemClock,
          frameMs: request.frameMs,
          leadMs: settings.lead_ms,
          isBlocked: () => listener.isBlocked,
          send: (frames) => listener.sendSilence(frames),
        })
      : null;
    participant = session.join(listener, request.joining);
    if (listener.isClosed) {
      session.leave(participant);
      throw new GatewayError("session_closed", `Session ended: ${session.id}`);
    }
    this.#listener = listener;
    listener.open(headersOf(request));
    if (!listener.isClosed) filler?.start();
  }
}

/** Throws unknown_session unless somebody has opened it or the listener would wait. */
function sessionFor(call: Call, request: AudioRequest, options: AudioStreamOptions): Session {
  return request.joining.mayWait
    ? options.sessions.open(call.sessionId)
    : options.sessions.get(call.sessionId);
}

function headersOf(request: AudioRequest): Record<string, string> {
  return {
    "content-type": request.contentType,
    "cache-control": "no-store",
    "accept-ranges": "none",
    "x-content-type-options": "nosniff",
    "access-control-expose-headers": "voicewire-start-ms",
  };
}

/** The head of what GET would answer; nobody joins and no session is opened. */
function answerHead(res: HttpResponse, name: ContainerName, call: Call, options: AudioStreamOptions): void {
  let status = 200;
  let headers: Record<string, string>;
  try {
    const request = parseAudioRequest(name, call.query, options.defaults);
    if (!request.joining.mayWait) options.sessions.get(call.sessionId);
    headers = headersOf(request);
  } catch (thrown) {
    status = toGatewayError(thrown).httpStatus;
    headers = { "content-type": "application/json" };
  }
  res.writeStatus(String(status));
  for (const [header, value] of Object.entries({ ...headers, ...corsHeaders(res) }))
    res.writeHeader(header, value);
  res.endWithoutBody();
}
