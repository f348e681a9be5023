/** Calls over lines in memory on a real session with a fake clock and a scripted upstream. */

import type { SendResult } from "../../../src/delivery/listener.ts";
import type { Logger } from "../../../src/kit/log.ts";
import { RefusalCounts } from "../../../src/kit/refusal-counts.ts";
import type { CallStart, CarrierDialect, Wire } from "../../../src/protocol/carrier/carrier.ts";
import type { SessionSettings } from "../../../src/session/session-deps.ts";
import type { CallRights } from "../../../src/telephony/call.ts";
import { Calls } from "../../../src/telephony/calls.ts";
import type { CallLine } from "../../../src/telephony/carrier-listener.ts";
import { ANY_CALL } from "../../helpers/open-door.ts";
import { createRig } from "../../helpers/session-rig.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { TINY_START, tinyDialect } from "./tiny-dialect.ts";

/** A carrier's socket in memory: what was sent, in which cork. */
export class MemoryLine implements CallLine {
  readonly corks: Wire[][] = [];
  buffered = 0;
  ended: { readonly code: number; readonly reason: string } | null = null;

  send(messages: readonly Wire[]): SendResult {
    this.corks.push(messages.map((wire) => (typeof wire === "string" ? wire : Uint8Array.from(wire))));
    return this.buffered > 0 ? "buffered" : "sent";
  }
  bufferedBytes(): number {
    return this.buffered;
  }
  end(code: number, reason: string): void {
    this.ended ??= { code, reason };
  }
  get sent(): Wire[] {
    return this.corks.flat();
  }
  /** Frames of audio sent, in all. */
  get frames(): number {
    return this.sent.reduce(
      (sum, wire) => sum + Number(/^(?:audio|rest) (\d+)$/.exec(String(wire))?.[1] ?? 0),
      0,
    );
  }
  get marks(): string[] {
    return this.sent.flatMap((wire) => /^mark (.+)$/.exec(String(wire))?.[1] ?? []);
  }
}

export interface CallRigOptions {
  readonly settings?: Partial<SessionSettings>;
  readonly maxCalls?: number;
  readonly log?: Logger;
  /** Of who brings the calls; default everything. */
  readonly rights?: CallRights;
}

export function createCallRig({
  settings,
  maxCalls = 8,
  log = watchedLog,
  rights = ANY_CALL,
}: CallRigOptions = {}) {
  const rig = createRig(settings);
  const refusals = new RefusalCounts();
  const calls = new Calls({ sessions: rig.sessions, clock: rig.clock, log, maxCalls, refusals });
  const dial = (dialect: CarrierDialect | null = tinyDialect(), query: Record<string, string> = {}) => {
    const line = new MemoryLine();
    const call = calls.take({
      line,
      hello: { query: new Map(Object.entries(query)), headers: new Map() },
      dialectOf: () => dialect,
      rights,
    });
    const say = (message: object | Uint8Array): void =>
      call.receive(message instanceof Uint8Array ? message : JSON.stringify(message));
    const start = (facts: Partial<CallStart> = {}): void =>
      say({ on: "started", call: { ...TINY_START, ...facts } });
    return { line, call, say, start };
  };
  return { ...rig, calls, dial, refusals };
}
