/** The messages of a whole call, as its carrier sends them. */
import type { CarrierName, Wire } from "../../src/protocol/carrier/carrier.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { fakeCall, fakePeer, fakePlayer } from "../kit/carriers/fake-carrier.ts";

/** `id`: of the call, unlike those of calls beside it. */
export function recordedCall(carrier: CarrierName, id = "0000"): Wire[] {
  const call = fakeCall(carrier, {
    callId: `CA${id}`,
    streamId: `MZ${id}`,
    from: "+15550100",
    to: "+15550101",
  });
  const sent: Wire[] = [];
  const player = fakePlayer(carrier, call.format, new FakeClock());
  const peer = fakePeer(carrier, { call, player, send: (wire) => sent.push(wire), violate: () => undefined });
  sent.push(...peer.opening(), peer.media(new Uint8Array(16)), peer.digit("5"), ...peer.closing());
  peer.close();
  return sent;
}
