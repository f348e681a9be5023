/** A vendor socket without a network: an upstream whose answers the test gives, a port that keeps what is sent. */

import type { GatewayError } from "../../../src/errors.ts";
import { createCounters } from "../../../src/metrics/counters.ts";
import { parseSocketSettings } from "../../../src/protocol/elevenlabs/socket-settings.ts";
import type { Alignment } from "../../../src/timing/alignment.ts";
import type { Upstream } from "../../../src/upstream/types.ts";
import { DialogueSocket } from "../../../src/vendor-sockets/dialogue-socket.ts";
import type { SocketLimits, SpeakingSocket } from "../../../src/vendor-sockets/ports.ts";
import { SpeechSocket } from "../../../src/vendor-sockets/speech-socket.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { FakeRequest } from "../../helpers/session-rig.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import type { Heard } from "../../wire/vendor-rig.ts";

const BYTES_PER_MS = 32;
export const MS_PER_CHAR = 10;

/** One request as it was made. */
export class Asked extends FakeRequest {
  isOver = false;
  #saidChars = 0;

  override abort(): void {
    super.abort();
    this.isOver = true;
  }

  get text(): string {
    const { request } = this;
    return request.kind === "speech" ? request.text : request.inputs.map(({ text }) => text).join("");
  }

  /** Says so many more characters; with their timing unless it is given. */
  say(count: number, alignment?: Alignment | null): void {
    if (this.isAborted) return;
    const from = this.#saidChars;
    this.#saidChars = Math.min(this.text.length, from + count);
    const audio = new Uint8Array((this.#saidChars - from) * MS_PER_CHAR * BYTES_PER_MS);
    const timing = alignment === undefined ? this.alignment(from, this.#saidChars) : alignment;
    this.handlers.chunk({ audio, alignment: timing, normalizedAlignment: timing, voiceSegments: [] });
  }

  alignment(from: number, to: number): Alignment {
    const seconds = (index: number) => (index * MS_PER_CHAR) / 1000;
    const indices = Array.from({ length: to - from }, (_, index) => from + index);
    return {
      characters: indices.map((index) => this.text[index] ?? ""),
      character_start_times_seconds: indices.map(seconds),
      character_end_times_seconds: indices.map((index) => seconds(index + 1)),
    };
  }

  end(): void {
    this.isOver = true;
    if (!this.isAborted) this.handlers.end();
  }

  fail(error: GatewayError): void {
    this.isOver = true;
    if (!this.isAborted) this.handlers.error(error);
  }

  finish(): void {
    this.say(this.text.length);
    this.end();
  }
}

export interface SocketRig {
  readonly socket: SpeakingSocket;
  readonly clock: FakeClock;
  readonly asked: Asked[];
  readonly heard: Heard[];
  readonly end: { code: number; reason: string } | null;
  /** Bytes that the client did not take. */
  buffered: number;
  send(...messages: readonly object[]): void;
  /** Says all that is asked until nothing is. */
  finishAll(): void;
}

export interface SocketRigOptions {
  readonly kind?: "single" | "multi" | "dialogue";
  readonly query?: string;
  readonly limits?: Partial<SocketLimits>;
}

export function socketRig(options: SocketRigOptions = {}): SocketRig {
  const { kind = "multi", query = "", limits = {} } = options;
  const clock = new FakeClock();
  const asked: Asked[] = [];
  const upstream: Upstream = {
    open: (request, handlers) => {
      const one = new Asked(request, handlers);
      asked.push(one);
      return one;
    },
  };
  const heard: Heard[] = [];
  const rig = { buffered: 0, end: null as SocketRig["end"] };
  const isDialogue = kind === "dialogue";
  const socket = {
    deps: {
      upstream,
      clock,
      counters: createCounters(),
      log: watchedLog,
      limits: {
        maxContexts: 5,
        maxTextChars: 100_000,
        maxOutboxBytes: 1000,
        maxRequests: 6,
        timingHoldMs: 100,
        firstAudioMs: 0,
        ...limits,
      },
    },
    port: {
      send: (json: string) => {
        if (rig.end !== null) throw new Error(`Sent after the close: ${json.slice(0, 100)}`);
        heard.push(JSON.parse(json) as Heard);
      },
      bufferedBytes: () => rig.buffered,
      end: (code: number, reason: string) => {
        if (rig.end !== null) throw new Error("Closed twice");
        rig.end = { code, reason };
        made.closed();
      },
    },
    settings: parseSocketSettings(
      new URLSearchParams(`output_format=pcm_16000&${query}`),
      isDialogue ? "dialogue" : "speech",
      () => true,
    ),
    isMulti: kind !== "single",
    voices: { pinned: null, check: () => undefined },
  };
  const made: SpeakingSocket = isDialogue
    ? new DialogueSocket(socket)
    : new SpeechSocket({ ...socket, voiceId: "v" });
  return {
    socket: made,
    clock,
    asked,
    heard,
    get end() {
      return rig.end;
    },
    get buffered() {
      return rig.buffered;
    },
    set buffered(bytes) {
      rig.buffered = bytes;
    },
    send: (...messages) => {
      for (const message of messages) made.receive(JSON.stringify(message));
    },
    finishAll: () => {
      for (
        let open = asked.filter((one) => !one.isOver);
        open.length > 0;
        open = asked.filter((one) => !one.isOver)
      ) {
        for (const one of open) one.finish();
      }
    },
  };
}
