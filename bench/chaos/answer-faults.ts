/** Faults between gateway and service, or client and gateway, that one answer has and the next one has not. */
import { monotonicMs } from "../kit/monotonic.ts";
import type { Random } from "../kit/random.ts";
import { ServedProgram } from "../kit/served-program.ts";
import type { Run } from "./caller.ts";
import { type AnswerFault, FaultLink } from "./fault-link.ts";
import { callAll, type Fault, type Plan, Plans, type Scene, type Stage } from "./scene.ts";

/** Short, so that a thousand runs take minutes: what waits for 5 s and 10 s otherwise. */
export const GATEWAY_ARGS = ["--first-audio-ms", "2500", "--upstream-timeout-ms", "2500", "--trim-ms", "0"];
/** Several times as fast as speech, as speech services are. */
export const UPSTREAM_BYTES_PER_SECOND = 60_000;
const HALF_OPEN_MS = 8000;
const CLIENT_AWAY_MS = 2000;
const CALLS_AT_ONCE = 30;
/** Of an answer over HTTP: no audio is in it. */
const HEAD_BYTES = 150;
/** Answers to one caller that have the fault: the first, the first few, or as many as the gateway asks for. */
const HITS = [1, 1, 1, 2, 3, Number.POSITIVE_INFINITY];

export type Kind = AnswerFault["kind"] | "none";

/** `size` of an answer: where it strikes is anywhere in it. */
export function faultOf(kind: Kind, size: number, random: Random): AnswerFault | null {
  const afterBytes = random.below(size);
  switch (kind) {
    case "none":
      return null;
    case "latency":
      return { kind, ms: random.below(150), jitterMs: () => random.below(150) };
    case "chunks":
      return { kind, size: () => random.pick([1, 1, 2, 3, 7, 251, 1021]) };
    case "stall":
      return { kind, afterBytes, ms: 300 + random.below(4000) };
    case "reset":
      return { kind, afterBytes };
    case "truncated":
      return { kind, afterBytes, proper: random.chance(0.5) };
    case "half-open":
      return { kind, afterBytes, ms: HALF_OPEN_MS };
  }
}

/** What was struck, and when, by the key of the request. */
class Strikes {
  readonly #at = new Map<string, number>();

  note(key: string): void {
    if (!this.#at.has(key)) this.#at.set(key, monotonicMs());
  }
  at(key: string): number | null {
    return this.#at.get(key) ?? null;
  }
}

/** The link lies between the gateway and the service. A request is known by its seed. */
async function upstreamScene(kind: Kind, stage: Stage): Promise<Scene> {
  const strikes = new Strikes();
  const faults = new Map<string, { readonly size: number; hits: number }>();
  const link = await FaultLink.open({
    targetPort: stage.service.port,
    marker: /"seed":(\d+)/,
    faultOf: (seed) => {
      const fault = faults.get(seed);
      if (fault === undefined) return null;
      if (kind === "none") strikes.note(seed);
      if (fault.hits <= 0) return null;
      fault.hits -= 1;
      // What strikes for ever leaves no room to go on: the utterance has to fail.
      const isForEver = fault.hits === Number.POSITIVE_INFINITY && strikes.at(seed) !== null;
      return faultOf(kind, isForEver ? HEAD_BYTES : fault.size, stage.random);
    },
    onStruck: (seed) => strikes.note(seed),
    bytesPerSecond: UPSTREAM_BYTES_PER_SECOND,
  });
  const gateway = await gatewayFor(stage, link);
  const plans = new Plans(stage);
  return {
    batch: async (calls) => {
      const planned = await plans.next(calls);
      for (const { seed, answerBytes } of planned)
        faults.set(`${seed}`, { size: answerBytes, hits: stage.random.pick(HITS) });
      return await struckOf(planned, {
        baseUrl: () => `http://127.0.0.1:${gateway.port}`,
        struckMs: ({ seed }) => strikes.at(`${seed}`),
      });
    },
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
    },
  };
}

async function gatewayFor(stage: Stage, link: FaultLink): Promise<ServedProgram> {
  try {
    return await ServedProgram.start({
      distUrl: stage.distUrl,
      workers: 1,
      args: [
        "--upstream-url",
        `http://127.0.0.1:${link.port}`,
        "--voice",
        stage.service.voiceId,
        ...GATEWAY_ARGS,
      ],
    });
  } catch (thrown) {
    await link[Symbol.asyncDispose]();
    throw thrown;
  }
}

/** The link lies between the client and the gateway. A connection is known by its session. */
async function clientScene(kind: Kind, stage: Stage): Promise<Scene> {
  const strikes = new Strikes();
  const faults = new Map<string, { readonly size: number; hits: number }>();
  const gateway = await ServedProgram.start({
    distUrl: stage.distUrl,
    workers: 1,
    args: [
      ...["--upstream-url", `http://127.0.0.1:${stage.service.port}`, "--voice", stage.service.voiceId],
      ...GATEWAY_ARGS,
    ],
  });
  const link = await FaultLink.open({
    targetPort: gateway.port,
    marker: /GET \/live\/([\w-]+)/,
    faultOf: (session) => {
      const fault = faults.get(session);
      if (fault === undefined || fault.hits <= 0) return null;
      fault.hits -= 1;
      const found = faultOf(kind, fault.size, stage.random);
      if (found?.kind === "half-open") return { ...found, ms: CLIENT_AWAY_MS };
      // A WebSocket has no end that looks whole.
      return found?.kind === "truncated" ? { ...found, proper: false } : found;
    },
    onStruck: (session) => strikes.note(session),
    bytesPerSecond: null,
  });
  const plans = new Plans(stage);
  return {
    batch: async (calls) => {
      const planned = await plans.next(calls);
      // A client that is cut off again and again comes back each time; for ever it could not be well.
      for (const { session, truth, answerBytes } of planned)
        faults.set(session, { size: truth?.length ?? answerBytes / 2, hits: 1 + stage.random.below(3) });
      return await struckOf(planned, {
        baseUrl: () => `http://127.0.0.1:${link.port}`,
        struckMs: ({ session }) => strikes.at(session),
      });
    },
    [Symbol.asyncDispose]: async () => {
      await link[Symbol.asyncDispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

async function struckOf(planned: readonly Plan[], of: Parameters<typeof callAll>[1]): Promise<Run[]> {
  const runs = await callAll(planned, of);
  return runs.filter(({ isStruck }) => isStruck);
}

const upstream = (kind: Kind, says: string): Fault => ({
  name: kind,
  says,
  callsAtOnce: CALLS_AT_ONCE,
  open: (stage) => upstreamScene(kind, stage),
});

const client = (kind: Kind, says: string): Fault => ({
  name: `client-${kind}`,
  says,
  callsAtOnce: CALLS_AT_ONCE,
  open: (stage) => clientScene(kind, stage),
});

export const ANSWER_FAULTS: readonly Fault[] = [
  upstream("none", "nothing: what the others are to be held against"),
  upstream("latency", "each 2 KB of an answer of the service comes 0 to 300 ms late"),
  upstream("stall", "an answer stands still for 0.3 to 4.3 s, and goes on"),
  upstream("reset", "the connection to the service is reset inside an answer"),
  upstream("truncated", "an answer ends early: the connection is closed, or the HTTP answer looks whole"),
  upstream("chunks", "an answer comes in pieces of 1 to 1021 bytes"),
  upstream("half-open", "inside an answer nothing comes any more, and the connection stays open"),
  client("latency", "each 2 KB to the client comes 0 to 300 ms late"),
  client("stall", "the client's connection stands still for 0.3 to 4.3 s"),
  client("reset", "the client's connection is reset, up to three times, and it comes back"),
  client("truncated", "the client's connection is closed without a close frame, up to three times"),
  client("chunks", "what the client gets comes in pieces of 1 to 1021 bytes"),
  client(
    "half-open",
    "nothing passes between client and gateway for 2 s, tokens of texts too, then the connection is reset",
  ),
];
