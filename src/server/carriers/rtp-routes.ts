/**
 * `POST /carrier/rtp` takes a UDP port for one call, `DELETE /carrier/rtp/{call_id}` gives it back. RTP says neither
 * who calls nor which session is meant, so whoever sets the call up says it here.
 */

import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { randomInt, randomUUID } from "node:crypto";
import { isIP, SocketAddress } from "node:net";
import { networkInterfaces } from "node:os";
import type { Caller } from "../../access/caller.ts";
import type { ProxyTrust } from "../../access/client-address.ts";
import { AUDIO_FORMATS } from "../../audio/formats.ts";
import type { Cluster, LiveCluster } from "../../cluster/cluster.ts";
import type { Pacer } from "../../delivery/pacer.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import { type RtpRequest, readRtpRequest } from "../../protocol/carrier/rtp-request.ts";
import { checkId } from "../../session/sessions.ts";
import type { Calls } from "../../telephony/calls.ts";
import { pathPart, Reply, readBody } from "../http.ts";
import { ArrivedAnswer } from "../relayed/arrived-answer.ts";
import type { HostedAnswer, HostedRequest } from "../relayed/hosted-answer.ts";
import { requestAddress } from "../request-address.ts";
import { needs, type Routes } from "../routes.ts";
import type { CallerRights } from "./caller-rights.ts";
import type { CarrierAuth } from "./carrier-auth.ts";
import { type PeerList, PeerRule } from "./rtp-networks.ts";
import { type RtpCall, type RtpPeer, RtpPort, rtpFamily } from "./rtp-port.ts";

interface PortRange {
  readonly from: number;
  readonly to: number;
}

export interface RtpOptions {
  readonly carrierAuth: CarrierAuth;
  /** Whose word about a client's address counts. */
  readonly proxyTrust: ProxyTrust;
  readonly calls: Calls;
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: string;
  /** UDP ports to choose from, both inclusive; null: whichever is free. */
  readonly rtpPorts: PortRange | null;
  /** Who may be a peer. */
  readonly peers: PeerList;
  /** Whether a call may ask for a peer that never sends. */
  readonly allowsListenOnly: boolean;
  readonly maxMessageBytes: number;
  /** The other nodes, one of which may have a call's port; null: this one is alone. */
  readonly cluster: (LiveCluster & Pick<Cluster, "nodeName" | "processOf">) | null;
}

/** As the audit log calls it. */
const ENDING = "/carrier/rtp/:call";
/** Ports tried before it is said that none is free. */
const MAX_TRIES = 64;

/** The ports that are open, by call. */
export class RtpPorts {
  readonly #options: RtpOptions;
  readonly #open = new Map<string, RtpPort>();
  /** UDP ports of the range that calls have, or are being tried for. */
  readonly #taken = new Set<number>();

  constructor(options: RtpOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#open.size;
  }

  route(app: Routes): void {
    app.post("/carrier/rtp", needs("call"), (res, req, caller) => this.#answer(res, req, caller));
    app.del(ENDING, needs("call"), (res, req, caller) => {
      const callId = pathPart(req);
      const reply = new Reply(res);
      const { carrierAuth, proxyTrust } = this.#options;
      try {
        const rights = carrierAuth.announcer(res, req, { caller, port: "rtp" });
        const owner = this.#ownerOf(callId);
        const address = requestAddress(res, req, proxyTrust);
        if (owner === null) reply.json(200, this.#end(callId, rights));
        else this.#endAt(owner, { callId, caller, address }, reply);
      } catch (thrown) {
        reply.fail(thrown);
      }
    });
  }

  /** A call's port is to be closed, by who has come to another node. Throws unknown_call, forbidden. */
  answerHosted({ body: callId, caller, address }: HostedRequest, answer: HostedAnswer): void {
    const rights = this.#options.carrierAuth.announcerAt({ caller, address, surface: ENDING });
    answer.json(200, this.#end(callId, rights));
  }

  /** The process that has the call's port; null: this one. Throws unknown_call. */
  #ownerOf(callId: string): string | null {
    const { cluster } = this.#options;
    const [nodeName = "", id] = callId.split(".");
    if (cluster === null || id === undefined || nodeName === cluster.nodeName) return null;
    const owner = cluster.processOf(nodeName);
    if (owner === undefined) {
      throw new GatewayError("unknown_call", "No RTP call has this id: the node that it names is not there");
    }
    return owner;
  }

  #end(callId: string, rights: CallerRights) {
    const port = this.#open.get(callId);
    if (port === undefined) throw new GatewayError("unknown_call", "No RTP call has this id");
    rights.check({ session: port.sessionId });
    port.close();
    return { call_id: callId };
  }

  #endAt(
    owner: string,
    { callId, ...client }: { readonly callId: string; readonly caller: Caller; readonly address: string },
    reply: Reply,
  ): void {
    const request = { ...client, sessionId: "", route: "rtp", query: "", body: callId } as const;
    ArrivedAnswer.ask({ cluster: this.#options.cluster, owner }, request, {
      stream: null,
      onAnswer: (answer) => reply.send(answer),
      onRefused: (error) => reply.fail(error),
    });
  }

  /** Idempotent. */
  close(): void {
    for (const port of [...this.#open.values()]) port.close();
  }

  #answer(res: HttpResponse, req: HttpRequest, caller: Caller): void {
    const reply = new Reply(res);
    try {
      const rights = this.#options.carrierAuth.announcer(res, req, { caller, port: "rtp" });
      readBody(res, this.#options.maxMessageBytes)
        .then(async (body) => reply.json(201, await this.#take(body, rights)))
        .catch((thrown: unknown) => reply.fail(thrown));
    } catch (thrown) {
      reply.fail(thrown);
    }
  }

  async #take(body: string, rights: CallerRights) {
    const request = readRtpRequest(body);
    const session = checkId(request.session);
    const { text, voiceId } = request;
    const parameters = {
      session,
      ...(text === undefined ? {} : { text }),
      ...(voiceId === undefined ? {} : { voice_id: voiceId }),
    };
    rights.check(parameters);
    const rule = this.#peerRule();
    const peer = this.#checkedPeer(request, rule);
    rights.unlessRefused(() => {
      this.#options.calls.mustHaveRoom();
      this.#mustHaveRoom();
    });
    const { format, isListenOnly, dtmfPayloadType } = request;
    const { cluster } = this.#options;
    // Whichever node is asked to end the call finds where it is.
    const callId = cluster === null ? randomUUID() : `${cluster.nodeName}.${randomUUID()}`;
    const call = { callId, parameters, format, peer, isListenOnly, eventType: dtmfPayloadType, rights };
    const letGo = rights.openPort();
    const { port, number } = await this.#bound(call, { rule, letGo }).catch((thrown: unknown) => {
      letGo();
      throw thrown;
    });
    return {
      call_id: callId,
      session,
      host: this.#options.host,
      port: number,
      format,
      payload_type: AUDIO_FORMATS[format].rtpPayloadType,
      dtmf_payload_type: dtmfPayloadType,
      ssrc: port.ssrc,
    };
  }

  /** Throws invalid_field where nobody may be a peer. */
  #peerRule(): PeerRule {
    const { peers, host } = this.#options;
    if (peers.isNobody) {
      throw new GatewayError(
        "invalid_field",
        "Field remote can't be used: the setting rtp-peers is none, so nobody may be an RTP peer; expected networks in rtp-peers",
        { field: "remote" },
      );
    }
    const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
    return new PeerRule({ list: peers, host, own });
  }

  /** Throws invalid_field. */
  #checkedPeer({ peer, isListenOnly }: RtpRequest, rule: PeerRule): RtpPeer | null {
    const { host, allowsListenOnly } = this.#options;
    if (isListenOnly && !allowsListenOnly) {
      throw new GatewayError(
        "invalid_field",
        "Field listen_only can't be used: the setting rtp-listen-only is off; expected a peer that sends, or rtp-listen-only on",
        { field: "listen_only" },
      );
    }
    if (peer === null) return null;
    const reachable = reachablePeer(peer, host);
    const reason = rule.refusal(reachable.address);
    if (reason === null) return reachable;
    throw new GatewayError("invalid_field", `Field remote can't be used: ${reason}`, { field: "remote" });
  }

  /** A port that listens, and its number. Rejects with port_in_use where none is free, and with what `RtpPort.bind` does. */
  async #bound(call: RtpCall, { rule, letGo }: { readonly rule: PeerRule; readonly letGo: () => void }) {
    const { calls, pacer, clock, log, host } = this.#options;
    let tries = 0;
    let cause: unknown;
    for (const wanted of this.#portsToTry()) {
      if (tries === MAX_TRIES) break;
      tries += 1;
      let isBound = false;
      const port = new RtpPort({
        call,
        calls,
        pacer,
        clock,
        log,
        host,
        rule,
        onClosed: () => {
          this.#open.delete(call.callId);
          this.#taken.delete(wanted);
          if (isBound) letGo();
        },
      });
      this.#open.set(call.callId, port);
      this.#taken.add(wanted);
      try {
        const number = await port.bind(wanted);
        isBound = true;
        return { port, number };
      } catch (thrown) {
        if (!(thrown instanceof GatewayError && thrown.code === "port_in_use")) throw thrown;
        cause = thrown;
      }
    }
    throw new GatewayError(
      "port_in_use",
      `No UDP port of ${host} can be taken for RTP: ${tries} were tried, expected a free one in the setting rtp-ports`,
      { cause },
    );
  }

  /** Ports that wait for their peer are no calls yet, and bounded all the same. */
  #mustHaveRoom(): void {
    const { maxCalls } = this.#options.calls;
    if (this.#open.size < maxCalls) return;
    throw new GatewayError("listener_limit", `Gateway is full: ${maxCalls} RTP ports, which is the limit`, {
      retryAfterMs: 5000,
    });
  }

  /**
   * Even ones of the range (RFC 3550 section 11) that no call has, from a random one on: strangers send to a port that they
   * can guess. 0 where the system may choose.
   */
  *#portsToTry(): Generator<number> {
    const { rtpPorts } = this.#options;
    if (rtpPorts === null) {
      yield 0;
      return;
    }
    const first = rtpPorts.from + (rtpPorts.from % 2);
    const size = Math.max(1, Math.floor((rtpPorts.to - first) / 2) + 1);
    const start = randomInt(size);
    for (let step = 0; step < size; step += 1) {
      const port = first + 2 * ((start + step) % size);
      if (!this.#taken.has(port)) yield port;
    }
  }
}

/** `10000-10100`, both inclusive; null where the system may choose. Throws invalid_config. */
export function readPortRange(text: string): PortRange | null {
  if (text === "") return null;
  const [, from = "", to = ""] = /^(\d{1,5})-(\d{1,5})$/.exec(text) ?? [];
  if (from !== "" && Number(from) >= 1024 && Number(from) < Number(to) && Number(to) <= 65_535) {
    return { from: Number(from), to: Number(to) };
  }
  throw new GatewayError(
    "invalid_config",
    "Setting rtp-ports can't be used: expected two ports from 1024 to 65535, e.g. 10000-10100",
    { field: "rtp-ports" },
  );
}

/** `peer.address` is an IP address. Throws invalid_field where ports on `host` can't send to it. */
export function reachablePeer({ address, port }: RtpPeer, host: string): RtpPeer {
  const family = rtpFamily(host);
  if (isIP(address) === family) {
    // One IPv6 address can be written in several ways, and packets come with the shortest.
    return { address: new SocketAddress({ address, family: `ipv${family}` }).address, port };
  }
  throw new GatewayError(
    "invalid_field",
    `Field remote can't be used: expected an IPv${family} address, as RTP leaves from ${host}`,
    { field: "remote" },
  );
}
