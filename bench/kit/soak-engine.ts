/** The session engine of the build under test, put together without sockets: a clock that is turned by hand, real encoders. */

import type { OpusPool } from "../../src/audio/codecs/opus-pool.ts";
import { BlockPool } from "../../src/kit/block-pool.ts";
import { ByteRoom } from "../../src/kit/byte-room.ts";
import type { Logger } from "../../src/kit/log.ts";
import type { Counters } from "../../src/metrics/counters.ts";
import { VoiceLoudness } from "../../src/session/voice-loudness.ts";
import type { Upstream } from "../../src/upstream/types.ts";
import type { FakeClock } from "../../test/helpers/fake-clock.ts";
import { TEST_SETTINGS } from "../../test/helpers/session-rig.ts";

type Modules = Pick<typeof import("../../src/audio/codecs/opus-pool.ts"), "createOpusPool"> &
  Pick<typeof import("../../src/errors.ts"), "GatewayError" | "toGatewayError"> &
  Pick<typeof import("../../src/delivery/pacer.ts"), "Pacer"> &
  Pick<typeof import("../../src/metrics/counters.ts"), "createCounters"> &
  Pick<typeof import("../../src/protocol/commands.ts"), "parseCommand"> &
  Pick<typeof import("../../src/session/carry-out.ts"), "handleCommand"> &
  Pick<typeof import("../../src/session/sessions.ts"), "Sessions"> &
  Pick<typeof import("../../src/session/listener-settings.ts"), "parseSettings">;

/** All of one build: an error of one copy is not an error of another. */
const MODULES = [
  "audio/codecs/opus-pool.js",
  "errors.js",
  "delivery/pacer.js",
  "metrics/counters.js",
  "protocol/commands.js",
  "session/carry-out.js",
  "session/sessions.js",
  "session/listener-settings.js",
];

export const SOAK_DEFAULTS = { leadMs: 300, maxLeadMs: 10_000 };

export async function loadModules(distUrl: string): Promise<Modules> {
  const loaded = await Promise.all(
    MODULES.map(async (path) => (await import(new URL(path, distUrl).href)) as object),
  );
  return Object.assign({}, ...loaded) as Modules;
}

export type Engine = ReturnType<typeof createEngine>;

export function createEngine(
  modules: Modules,
  parts: {
    readonly clock: FakeClock;
    readonly upstream: Upstream;
    readonly pool: OpusPool;
    readonly log: Logger;
  },
) {
  const { clock, upstream, pool, log } = parts;
  const counters: Counters = modules.createCounters();
  const pacer = new modules.Pacer(clock);
  const blocks = new BlockPool();
  const settings = {
    ...TEST_SETTINGS,
    maxListeners: 16,
    maxQueuedUtterances: 16,
    leadMs: SOAK_DEFAULTS.leadMs,
    aheadMs: 5000,
    keepMs: 2000,
    graceMs: 5000,
  };
  const sessions = new modules.Sessions(
    {
      clock,
      pacer,
      upstream,
      opusPool: pool,
      aligner: { open: () => null },
      blocks,
      log,
      counters,
      settings,
      loudness: new VoiceLoudness(),
      sounds: new ByteRoom(1_000_000),
      server: "voicewire/soak",
      defaultVoice: () => Promise.resolve("voice"),
    },
    1000,
  );
  return { modules, clock, counters, pacer, blocks, sessions };
}

/** Counts how encoders are taken and given back, and what they have under way. */
export class CountingPool implements OpusPool {
  readonly #pool: OpusPool;
  readonly #live = new Set<ReturnType<OpusPool["acquire"]>>();
  acquired = 0;

  constructor(pool: OpusPool) {
    this.#pool = pool;
  }

  get held(): number {
    return this.#live.size;
  }

  get framesInFlight(): number {
    let frames = 0;
    for (const stream of this.#live) frames += stream.framesInFlight;
    return frames;
  }

  acquire(...[options, handlers]: Parameters<OpusPool["acquire"]>): ReturnType<OpusPool["acquire"]> {
    const stream = this.#pool.acquire(options, handlers);
    this.acquired += 1;
    this.#live.add(stream);
    const live = this.#live;
    return {
      get framesInFlight() {
        return stream.framesInFlight;
      },
      push: (frames) => stream.push(frames),
      release: () => {
        live.delete(stream);
        stream.release();
      },
    };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
