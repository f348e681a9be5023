/** The gateway's port with nothing behind it but sessions on a fake clock: for what happens before a call begins. */
import { Calls } from "../../../src/calls/calls.ts";
import type { CarrierAuth } from "../../../src/edge/carrier-auth.ts";
import { RtpPorts } from "../../../src/edge/rtp-routes.ts";
import { type Edge, startEdge } from "../../../src/edge/server.ts";
import { Turns } from "../../../src/edge/turns.ts";
import { Pacer } from "../../../src/fanout/pacer.ts";
import { type Clock, systemClock } from "../../../src/kit/clock.ts";
import { silentLog } from "../../../src/kit/log.ts";
import { createRig } from "../../helpers/session-rig.ts";

export interface CarrierEdge extends AsyncDisposable {
  readonly edge: Edge;
  readonly wsUrl: string;
  readonly url: string;
  readonly sessions: ReturnType<typeof createRig>["sessions"];
  readonly calls: Calls;
  readonly rtpPorts: RtpPorts;
}

export interface CarrierEdgeOptions extends Partial<CarrierAuth> {
  readonly maxCalls?: number;
  /** By which it is measured what a connection takes at once; default the real one. */
  readonly turnsClock?: Clock;
}

export async function startCarrierEdge(options: CarrierEdgeOptions = {}): Promise<CarrierEdge> {
  const rig = createRig();
  const { sessions } = rig;
  const { maxCalls = 100, turnsClock = systemClock, ...auth } = options;
  const carrierAuth = { twilioAuthToken: "", carrierToken: "", publicUrl: "", ...auth };
  const shared = { log: silentLog, clock: systemClock, host: "127.0.0.1", maxMessageBytes: 65_536 };
  const calls = new Calls({ ...shared, sessions, maxCalls });
  const rtpPorts = new RtpPorts({
    ...shared,
    ...carrierAuth,
    calls,
    pacer: new Pacer(systemClock),
    rtpPorts: null,
  });
  const edge = await startEdge({
    sessions,
    ...shared,
    port: 0,
    defaults: { leadMs: 200, maxLeadMs: 10_000 },
    maxOutboxBytes: 65_536,
    idleSeconds: 120,
    counters: rig.counters,
    turns: new Turns({ clock: turnsClock, counters: rig.counters, between: () => undefined }),
    maxInboxBytes: 1_048_576,
    pageFolder: "/nowhere",
    server: "voicewire/test",
    forward: () => {
      throw new Error("Nothing is forwarded in this test");
    },
    metrics: () => Promise.resolve("other_total 1"),
    calls,
    carrierAuth,
    rtpPorts,
    vendor: {
      upstream: {
        open: () => {
          throw new Error("Nothing is asked for in this test");
        },
      },
      get: () => Promise.reject(new Error("Nothing is asked for in this test")),
      clock: systemClock,
      counters: rig.counters,
      maxSockets: 10,
      firstAudioMs: 0,
      defaultModel: "",
    },
  });
  return {
    edge,
    wsUrl: `ws://127.0.0.1:${edge.port}`,
    url: `http://127.0.0.1:${edge.port}`,
    sessions,
    calls,
    rtpPorts,
    [Symbol.asyncDispose]: () => {
      rtpPorts.close();
      edge.close();
      return Promise.resolve();
    },
  };
}
