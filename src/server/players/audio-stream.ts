/**
 * `GET /live/{session}/audio.ogg` (`.wav`, `.pcm`, `.ulaw`, `.mp3`): a session's audio as one endless file, for any
 * player. The response is a listener like any other: the session takes it in, within its limits and by its policy.
 */
import type { HttpResponse } from "uWebSockets.js";
import type { Door } from "../../access/door.ts";
import {
  CONTAINERS,
  type ContainerName,
  createLiveContainer,
  type LiveContainer,
} from "../../audio/containers/live-container.ts";
import { GatewayError } from "../../errors.ts";
import { systemClock } from "../../kit/clock.ts";
import { Semaphore } from "../../kit/semaphore.ts";
import type { Participant } from "../../session/connections/participant.ts";
import type { SettingsDefaults } from "../../session/listener-settings.ts";
import type { Session } from "../../session/session.ts";
import { Reply } from "../http.ts";
import {
  answerHead,
  enter,
  enterFor,
  joinSession,
  type LiveCall,
  type LiveDeps,
  liveCallOf,
  sessionFor,
  termsOf,
} from "../live-request.ts";
import { FarListener } from "../relayed/far-listener.ts";
import { needsInSession, type Routes } from "../routes.ts";
import { audited } from "../speech-access.ts";
import { AudioListener } from "./audio-listener.ts";
import { type AudioRequest, parseAudioRequest } from "./audio-request.ts";
import { SilenceFiller } from "./silence-filler.ts";

/**
 * MP3 streams of the whole gateway: each has an encoder of its own in the thread that serves everybody, which takes
 * 2.5 % of a core (measured).
 */
const MAX_MP3_STREAMS = 8;

export interface AudioStreamOptions extends LiveDeps {
  readonly defaults: SettingsDefaults;
  readonly idleSeconds: number;
  readonly door: Door;
}

export function routeAudio(app: Routes, options: AudioStreamOptions): void {
  const mp3Streams = new Semaphore({ limit: MAX_MP3_STREAMS });
  for (const name of CONTAINERS) {
    const path = `/live/:session/audio.${name}`;
    app.get(path, needsInSession("listen"), (res, req, caller) => {
      new AudioResponse(res, { ...options, mp3Streams }).answer(
        name,
        liveCallOf(res, req, { ...options, caller, surface: path }),
      );
    });
    app.head(path, needsInSession("listen"), (res, req, caller) => {
      const call = liveCallOf(res, req, { ...options, caller, surface: path });
      answerHead(res, { call, ...options }, () => {
        const request = parseAudioRequest(name, call.query, options.defaults);
        return { joining: request.joining, headers: headersOf(request) };
      });
    });
  }
}

class AudioResponse {
  readonly #res: HttpResponse;
  readonly #options: AudioStreamOptions & { readonly mp3Streams: Semaphore };
  /** Gives back what the response has taken. */
  #release: () => void = () => undefined;
  #listener: AudioListener | null = null;
  #isAborted = false;

  constructor(res: HttpResponse, options: AudioStreamOptions & { readonly mp3Streams: Semaphore }) {
    this.#res = res;
    this.#options = options;
    res.onAborted(() => {
      this.#isAborted = true;
      this.#listener?.markAborted();
    });
  }

  answer(name: ContainerName, call: LiveCall): void {
    this.#start(name, call).catch((thrown: unknown) => this.#refuse(thrown));
  }

  async #start(name: ContainerName, call: LiveCall): Promise<void> {
    const request = parseAudioRequest(name, call.query, this.#options.defaults);
    const { door, mp3Streams } = this.#options;
    const leave = enter(call, door);
    this.#release = leave;
    await enterFor(call, request.joining, this.#options, (place) => {
      if (place === "here") sessionFor(call, request.joining, this.#options);
    });
    if (name === "mp3") {
      const { caller, address } = call;
      const endOwn = audited({ ...call, door }, () => door.limits.begin("mp3_streams", caller, address));
      const endMp3 = mp3Streams.tryAcquire();
      this.#release = () => {
        endMp3?.();
        endOwn();
        leave();
      };
      audited({ ...call, door }, () => {
        if (endMp3 === null) throw noMp3Stream();
      });
    }
    const container = await createLiveContainer(request);
    const asked = { request, container, call };
    // It may have ended while an encoder was made, or gone to another node.
    await enterFor(call, request.joining, this.#options, (place) => {
      if (this.#isAborted) this.#release();
      else if (place === "here") this.#join(sessionFor(call, request.joining, this.#options), asked);
      else this.#joinAt(place.owner, asked);
    });
  }

  #join(session: Session, asked: Asked): void {
    const { call } = asked;
    const { joining } = asked.request;
    let participant: Participant | null = null;
    const parts = this.#partsFor(asked, {
      drained: () => {
        if (participant !== null) session.drained(participant);
      },
      leave: () => {
        if (participant !== null) session.leave(participant);
      },
    });
    const { listener } = parts;
    const { door } = this.#options;
    const opusAccount = door.limits.opusAccount(call.caller, call.address);
    participant = audited({ ...call, door }, () =>
      joinSession(session, listener, {
        joining: { ...joining, tenant: call.caller.tenant, opusAccount },
        isClosed: () => listener.isClosed,
      }),
    );
    this.#open(parts, asked);
  }

  #joinAt(owner: string, asked: Asked): void {
    const { request, call } = asked;
    let far: FarListener | null = null;
    const parts = this.#partsFor(asked, { drained: () => far?.drained(), leave: () => far?.leave() });
    const { listener } = parts;
    // Its client may go before it is opened.
    this.#listener = listener;
    const what = { call, joining: request.joining, http: { lastEventId: null } };
    far = FarListener.join({ ...this.#options, owner }, what, {
      listener,
      onJoined: () => this.#open(parts, asked),
      onRefused: (error) => {
        listener.end(error.closeCode);
        this.#refuse(error);
      },
    });
  }

  /** `session`: as the listener meets it. */
  #partsFor(
    { request, container, call }: Asked,
    session: { readonly drained: () => void; readonly leave: () => void },
  ): Parts {
    const { joining } = request;
    const listener = new AudioListener({
      res: this.#res,
      container,
      clock: systemClock,
      idleSeconds: this.#options.idleSeconds,
      isFilled: request.wantsSilence,
      onFrames: (frames) => filler?.note(frames),
      onDrained: session.drained,
      onClosed: () => {
        filler?.stop();
        this.#release();
        session.leave();
      },
      terms: termsOf(call, joining, this.#options),
    });
    const filler = request.wantsSilence
      ? new SilenceFiller({
          clock: systemClock,
          frameMs: request.frameMs,
          leadMs: joining.settings.lead_ms,
          isBlocked: () => listener.isBlocked,
          send: (frames) => listener.sendSilence(frames),
        })
      : null;
    return { listener, filler };
  }

  #open({ listener, filler }: Parts, { request }: Asked): void {
    this.#listener = listener;
    listener.open(headersOf(request));
    if (!listener.isClosed) filler?.start();
  }

  #refuse(thrown: unknown): void {
    this.#release();
    if (!this.#isAborted) new Reply(this.#res).fail(thrown);
  }
}

/** What is asked for, and who asks. */
interface Asked {
  readonly request: AudioRequest;
  readonly container: LiveContainer;
  readonly call: LiveCall;
}

interface Parts {
  readonly listener: AudioListener;
  /** null: no silence is wanted. */
  readonly filler: SilenceFiller | null;
}

function noMp3Stream(): GatewayError {
  return new GatewayError(
    "listener_limit",
    `Gateway is full: ${MAX_MP3_STREAMS} MP3 streams, which is the limit; audio.ogg has none of its own`,
    { retryAfterMs: 5000 },
  );
}

function headersOf(request: AudioRequest): Record<string, string> {
  return {
    "content-type": request.contentType,
    "cache-control": "no-store",
    "accept-ranges": "none",
    "access-control-expose-headers": "voicewire-start-ms",
  };
}
