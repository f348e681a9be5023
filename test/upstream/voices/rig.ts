/** A voice of one's own at two scripted services, and the router in front of them. */
import { type Clock, systemClock } from "../../../src/kit/clock.ts";
import type { Logger } from "../../../src/kit/log.ts";
import { UpstreamRouter } from "../../../src/upstream/upstream-router.ts";
import { type FakeScript, type FakeUpstream, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { CARTESIA_KEY, CARTESIA_VOICE, cartesia } from "../../kit/vendors/cartesia.ts";
import { KOKORO_VOICE, kokoro } from "../../kit/vendors/kokoro.ts";
import { clientOf, Recorder } from "../../unit/upstream/rig.ts";
import { configOf, serviceAt, speech } from "../services/rig.ts";

export const ANNA = {
  name: "anna",
  upstreamVoices: [`cartesia:${CARTESIA_VOICE}`, `kokoro:${KOKORO_VOICE}`, "tone-a"],
};

/** The system's clock, which can be put forward. */
export class AdvancedClock implements Clock {
  #aheadMs = 0;

  nowMs(): number {
    return systemClock.nowMs() + this.#aheadMs;
  }
  at(atMs: number, action: () => void) {
    return systemClock.at(atMs - this.#aheadMs, action);
  }
  advance(ms: number): void {
    this.#aheadMs += ms;
  }
}

export class Warnings implements Logger {
  readonly lines: string[] = [];
  info(_fields: object, message: string): void {
    this.lines.push(`info ${message}`);
  }
  warn(_fields: object, message: string): void {
    this.lines.push(`warn ${message}`);
  }
  error(_fields: object, message: string): void {
    this.lines.push(`error ${message}`);
  }
  debug(_fields: object, message: string): void {
    this.lines.push(`debug ${message}`);
  }

  get account(): string[] {
    return this.lines.filter((line) => /key (?:or|and) plan/.test(line));
  }
}

export interface Rig extends AsyncDisposable {
  readonly first: FakeUpstream;
  readonly cartesia: FakeUpstream;
  readonly kokoro: FakeUpstream;
  readonly router: UpstreamRouter;
  readonly clock: AdvancedClock;
  readonly log: Warnings;
  /** Asks as anna, and waits for the end. */
  ask(more?: Parameters<typeof speech>[1]): Promise<Recorder>;
}

export async function rigOf(
  scripts: { readonly cartesia?: FakeScript; readonly kokoro?: FakeScript } = {},
  { failoverMs = 5000, voice = ANNA, model = "", patienceMs = 0 } = {},
): Promise<Rig> {
  const clock = new AdvancedClock();
  const log = new Warnings();
  const first = await startFakeUpstream();
  const vendors = {
    cartesia: await startFakeUpstream(scripts.cartesia ?? cartesia()),
    kokoro: await startFakeUpstream(scripts.kokoro ?? kokoro()),
  };
  const services = [
    serviceAt(configOf("cartesia", vendors.cartesia.url, { key: CARTESIA_KEY }), 10_000, patienceMs),
    serviceAt(configOf("kokoro", vendors.kokoro.url)),
  ];
  const router = new UpstreamRouter({
    first: clientOf(first.url, { hasSubstitutes: true }),
    ...{ services, voices: [voice], model, failoverMs, clock, log },
  });
  const close = async (): Promise<void> => {
    await router.close();
    for (const each of [first, vendors.cartesia, vendors.kokoro]) await each[Symbol.asyncDispose]();
  };
  return {
    first,
    ...vendors,
    router,
    clock,
    log,
    ask: async (more = {}) => {
      const recorder = new Recorder();
      router.open(speech("anna", more), recorder);
      return recorder.over();
    },
    [Symbol.asyncDispose]: close,
  };
}

export function posts({ requests }: FakeUpstream): number {
  return requests.filter(({ method }) => method === "POST").length;
}
