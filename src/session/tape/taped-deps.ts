/** What a session needs from outside, with the tape between. */
import type { OpusPool, OpusStream } from "../../audio/codecs/opus-pool.ts";
import type { Timer } from "../../kit/clock.ts";
import type { AlignmentJob } from "../../timing/aligner.ts";
import type { Synthesis, SynthesisHandlers, SynthesisRequest } from "../../upstream/types.ts";
import type { SessionDeps } from "../session-deps.ts";
import type { Tape } from "./tape.ts";

export function tapedDeps(deps: SessionDeps, tape: Tape): SessionDeps {
  return {
    ...deps,
    tape,
    clock: tapedClock(deps, tape),
    pacer: tapedPacer(deps, tape),
    upstream: tapedUpstream(deps, tape),
    opusPool: tapedOpus(deps, tape),
    aligner: tapedAligner(deps, tape),
    sounds: {
      hasRoomFor: (bytes) => tape.read("room", true, () => deps.sounds.hasRoomFor(bytes)),
      take: (bytes) => deps.sounds.take(bytes),
    },
    loudness: {
      known: (speech) => deps.loudness.known(speech),
      levelFor: (speech) => {
        const known = tape.read("loudness", null, () => deps.loudness.known(speech));
        return deps.loudness.levelFor(speech, known);
      },
    },
  };
}

function tapedClock({ clock }: SessionDeps, tape: Tape): SessionDeps["clock"] {
  return {
    nowMs: () => tape.nowMs(),
    at: (atMs, action): Timer => clock.at(atMs, tape.callback("timer", action)),
    soon: (action) => queueMicrotask(tape.callback("soon", action)),
  };
}

function tapedPacer({ pacer }: SessionDeps, tape: Tape): SessionDeps["pacer"] {
  return {
    isHeld: (nowMs) => tape.read("held", false, () => pacer.isHeld(nowMs)),
    register: (paced, order) => {
      const tick = tape.callback("tick", () => paced.tick(tape.nowMs()));
      const send = tape.callback("send", () => paced.send());
      return pacer.register({ tick: () => tick(), send }, order);
    },
  };
}

function tapedUpstream({ upstream }: SessionDeps, tape: Tape): SessionDeps["upstream"] {
  let requests = 0;
  return {
    open(request, handlers): Synthesis {
      requests += 1;
      const number = requests;
      const taped = tapedHandlers(handlers, { tape, number });
      let open: Synthesis | null = null;
      tape.tell("ask", [number, asked(request)], () => {
        open = upstream.open(request, taped);
      });
      const tell = (name: "pause" | "resume" | "abort"): void =>
        tape.tell(name, [number], () => open?.[name]());
      return { pause: () => tell("pause"), resume: () => tell("resume"), abort: () => tell("abort") };
    },
  };
}

/** Without those who ask: their keys are nobody's affair. */
function asked({ subject: _subject, ...request }: SynthesisRequest): Omit<SynthesisRequest, "subject"> {
  return request;
}

type Said<K extends "head" | "chunk" | "error"> = Parameters<SynthesisHandlers[K]>[0];

/** `number`: which of the session's requests it is. */
function tapedHandlers(
  handlers: SynthesisHandlers,
  { tape, number }: { readonly tape: Tape; readonly number: number },
): SynthesisHandlers {
  const named = (name: string): string => `${name}/${number}`;
  return {
    requestSent: tape.callback(named("sent"), (ms?: number) => handlers.requestSent?.(ms)),
    requestTurnedAway: tape.callback(named("turnedAway"), () => handlers.requestTurnedAway?.()),
    head: tape.callback(named("head"), (head: Said<"head">) => handlers.head(head)),
    chunk: tape.callback(named("chunk"), (chunk: Said<"chunk">) => handlers.chunk(chunk)),
    billed: tape.callback(named("billed"), (characters: number) => handlers.billed?.(characters)),
    end: tape.callback(named("end"), () => handlers.end()),
    error: tape.callback(named("error"), (error: Said<"error">) => handlers.error(error)),
  };
}

/** Its packets are kept, and not encoded again: when they come back is nobody's to say again. */
function tapedOpus({ opusPool }: SessionDeps, tape: Tape): OpusPool {
  return {
    close: () => opusPool.close(),
    acquire(options, handlers): OpusStream {
      let waiting = 0;
      let stream: OpusStream | null = null;
      const packets = tape.callback("packets", (made: readonly Uint8Array[]) => {
        waiting = Math.max(0, waiting - made.length);
        handlers.packets(made);
      });
      const error = tape.callback("encoderError", (failed: Parameters<typeof handlers.error>[0]) =>
        handlers.error(failed),
      );
      tape.tell("encoder", [{ ...options }], () => {
        stream = opusPool.acquire(options, { packets, error });
      });
      return {
        get framesInFlight() {
          return waiting;
        },
        push(frames) {
          tape.read("encode", undefined, () => stream?.push(frames));
          waiting += frames.length / options.frameSamples;
        },
        release() {
          waiting = 0;
          stream?.release();
        },
      };
    },
  };
}

function tapedAligner({ aligner }: SessionDeps, tape: Tape): SessionDeps["aligner"] {
  return {
    open(request, handlers): AlignmentJob | null {
      const found = tape.callback("found", (words: Parameters<typeof handlers.found>[0]) =>
        handlers.found(words),
      );
      const ended = tape.callback("aligned", (outcome: Parameters<typeof handlers.ended>[0]) =>
        handlers.ended(outcome),
      );
      let job: AlignmentJob | null = null;
      const isOpen = tape.tell("align", [request], () => {
        job = aligner.open(request, { found, ended });
        return job !== null;
      });
      if (!isOpen) return null;
      return {
        push: (audio) => job?.push(audio),
        finish: () => job?.finish(),
        close: () => job?.close(),
      };
    },
  };
}
