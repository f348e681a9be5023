/** AudioSocket's connections at their end: what a peer that does not read can hold on to. */

import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { Pacer } from "../../../src/delivery/pacer.ts";
import { RefusalCounts } from "../../../src/kit/refusal-counts.ts";
import { startAudioSocket } from "../../../src/server/carriers/audiosocket.ts";
import type { CallOptions } from "../../../src/telephony/call.ts";
import { Calls } from "../../../src/telephony/calls.ts";
import type { CallLine } from "../../../src/telephony/carrier-listener.ts";
import { OPEN_DOOR } from "../../helpers/open-door.ts";
import { createRig } from "../../helpers/session-rig.ts";
import { until } from "../../helpers/until.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

/** No call was announced. */
const NO_TICKETS = { take: () => null };

/** Knows the lines of its calls. */
class WatchedCalls extends Calls {
  readonly lines: CallLine[] = [];

  override take(options: CallOptions) {
    this.lines.push(options.line);
    return super.take(options);
  }
}

it("a peer that never reads loses its connection two seconds after the call's end, and nothing is kept for it", async () => {
  const { clock, sessions } = createRig();
  const pacer = new Pacer(clock);
  const calls = new WatchedCalls({
    sessions,
    clock,
    log: watchedLog,
    maxCalls: 1,
    refusals: new RefusalCounts(),
  });
  const server = await startAudioSocket({
    calls,
    pacer,
    clock,
    log: watchedLog,
    door: OPEN_DOOR,
    tickets: NO_TICKETS,
    carrierAuth: { takesStrangers: () => true },
    allow: null,
    host: "127.0.0.1",
    port: 0,
  });
  const peer = connect(server.port, "127.0.0.1");
  try {
    await once(peer, "connect");
    // Its name, and a frame, which says the format.
    peer.write(Buffer.concat([Buffer.of(1, 0, 16), Buffer.alloc(16, 7), Buffer.of(0x10, 1, 64)]));
    peer.write(Buffer.alloc(320));
    await until("the call has begun", () => calls.stats.of("audiosocket").started === 1);
    const [line] = calls.lines;
    // Silence, until the kernel takes no more of it: some minutes of the clock that is turned by hand.
    for (let beats = 0; beats < 50_000 && line?.bufferedBytes() === 0; beats += 50) {
      clock.advance(1000);
      await turn();
      await turn();
    }
    expect(line?.bufferedBytes()).toBeGreaterThan(0);
    const pending = clock.pending;
    sessions.get("audiosocket-07070707-0707-0707-0707-070707070707").calls?.hangUp(undefined);
    expect(calls.stats.openCount).toBe(0);
    clock.advance(1990);
    await turn();
    expect(line?.bufferedBytes()).toBeGreaterThan(0);
    clock.advance(10);
    await until("nothing is kept", () => line?.bufferedBytes() === 0);
    expect(clock.pending).toBeLessThan(pending);
  } finally {
    peer.destroy();
    server.close();
    pacer.close();
  }
});
