/** The gateway's port with nothing behind it but sessions on a fake clock: for what happens before a call begins. */

import { readProxyTrust } from "../../../src/access/client-address.ts";
import type { Door } from "../../../src/access/door.ts";
import { Pacer } from "../../../src/delivery/pacer.ts";
import { ByteRoom } from "../../../src/kit/byte-room.ts";
import { type Clock, systemClock } from "../../../src/kit/clock.ts";
import { RefusalCounts } from "../../../src/kit/refusal-counts.ts";
import { AudioSocketTickets } from "../../../src/server/carriers/audiosocket-tickets.ts";
import { CarrierAuth } from "../../../src/server/carriers/carrier-auth.ts";
import { type CarrierSettings, readCarrierRules } from "../../../src/server/carriers/carrier-rules.ts";
import { readPeerList } from "../../../src/server/carriers/rtp-networks.ts";
import { RtpPorts } from "../../../src/server/carriers/rtp-routes.ts";
import { GatewaySource } from "../../../src/server/live-view/gateway-source.ts";
import { startOperations } from "../../../src/server/operations.ts";
import { PassedPaths } from "../../../src/server/proxy/proxy-paths.ts";
import { VoiceNames } from "../../../src/server/proxy/voice-names.ts";
import { type RunningServer, startServer } from "../../../src/server/server.ts";
import { FairScheduler } from "../../../src/server/sockets/fair-scheduler.ts";
import { Calls } from "../../../src/telephony/calls.ts";
import { OPEN_CHECKS, OPEN_DOOR } from "../../helpers/open-door.ts";
import { createRig } from "../../helpers/session-rig.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

export interface CarrierEdge extends AsyncDisposable {
  readonly edge: RunningServer;
  /** Of the operations port. */
  readonly opsUrl: string;
  readonly wsUrl: string;
  readonly url: string;
  readonly sessions: ReturnType<typeof createRig>["sessions"];
  readonly calls: Calls;
  readonly rtpPorts: RtpPorts;
}

export interface CarrierServerOptions extends Partial<CarrierSettings> {
  readonly maxCalls?: number;
  /** The settings of the same names. */
  readonly rtpPeers?: string;
  readonly rtpListenOnly?: boolean;
  /** Default: one without keys. */
  readonly door?: Door;
  /** By which it is measured what a connection takes at once; default the real one. */
  readonly turnsClock?: Clock;
}

export async function startCarrierEdge(options: CarrierServerOptions = {}): Promise<CarrierEdge> {
  const rig = createRig();
  const { sessions } = rig;
  const {
    maxCalls = 100,
    rtpPeers = "private",
    rtpListenOnly = false,
    turnsClock = systemClock,
    door = OPEN_DOOR,
    ...settings
  } = options;
  const carrierAuth = new CarrierAuth({
    rules: readCarrierRules({
      carriers: "",
      twilioAuthToken: "",
      carrierToken: "",
      publicUrl: "",
      ...settings,
    }),
    door,
    clock: systemClock,
  });
  const shared = { log: watchedLog, clock: systemClock, host: "127.0.0.1", maxMessageBytes: 65_536 };
  const calls = new Calls({ ...shared, sessions, maxCalls, refusals: new RefusalCounts() });
  const rtpPorts = new RtpPorts({
    ...shared,
    carrierAuth,
    calls,
    pacer: new Pacer(systemClock),
    rtpPorts: null,
    peers: readPeerList(rtpPeers),
    allowsListenOnly: rtpListenOnly,
    proxyTrust: door.proxyTrust,
    cluster: null,
  });
  const audioSocketTickets = new AudioSocketTickets({ ...shared, carrierAuth, port: 9092, maxTickets: 2 });
  const edge = await startServer({
    cluster: null,
    ...OPEN_CHECKS,
    door,
    sessions,
    ...shared,
    port: 0,
    defaults: { leadMs: 200, maxLeadMs: 10_000 },
    maxOutboxBytes: 65_536,
    idleSeconds: 120,
    counters: rig.counters,
    scheduler: new FairScheduler({
      clock: turnsClock,
      counters: rig.counters,
      between: () => undefined,
      room: new ByteRoom(Number.POSITIVE_INFINITY),
    }),
    maxInboxBytes: 1_048_576,
    pageFolder: "/nowhere",
    version: "0.0.0",
    passesFaults: false,
    passedPaths: new PassedPaths(""),
    forward: () => {
      throw new Error("Nothing is forwarded in this test");
    },
    maxUploadsPerClient: 4,
    tls: null,
    proxyTrust: readProxyTrust({ trustedProxies: "", proxyProtocol: false }),
    calls,
    carrierAuth,
    callPorts: [rtpPorts, audioSocketTickets],
    vendor: {
      upstream: {
        open: () => {
          throw new Error("Nothing is asked for in this test");
        },
      },
      voices: new VoiceNames({
        clock: systemClock,
        get: () => Promise.reject(new Error("Nothing is asked for in this test")),
      }),
      offered: () => Promise.resolve({ voices: [], unlisted: [] }),
      clock: systemClock,
      counters: rig.counters,
      maxSockets: 10,
      firstAudioMs: 0,
      defaultModel: "",
    },
  });
  const operations = await startOperations({
    ...OPEN_CHECKS,
    door,
    sessions,
    host: "127.0.0.1",
    port: 0,
    server: "voicewire/test",
    metrics: () => Promise.resolve(`other_total 1\n${calls.stats.render()}`),
    upstream: () => ({ open: 0, queued: 0, regions: [] }),
    clock: systemClock,
    liveView: new GatewaySource({
      clock: systemClock,
      ...{ door, sessions, upstreams: () => [], otherNodes: () => [] },
      node: { name: "test", version: "test" },
    }),
  });
  return {
    edge,
    opsUrl: `http://127.0.0.1:${operations.port}`,
    wsUrl: `ws://127.0.0.1:${edge.port}`,
    url: `http://127.0.0.1:${edge.port}`,
    sessions,
    calls,
    rtpPorts,
    [Symbol.asyncDispose]: () => {
      rtpPorts.close();
      edge.close();
      operations.close();
      return Promise.resolve();
    },
  };
}
