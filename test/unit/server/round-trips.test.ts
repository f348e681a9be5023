import { expect, it } from "vitest";
import { RoundTrips } from "../../../src/server/sockets/round-trips.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

class PingedSocket {
  readonly pings: Uint8Array[] = [];
  ping(message: Uint8Array): void {
    this.pings.push(message);
  }
  /** What it would send back. */
  get answer(): ArrayBuffer {
    return Uint8Array.from(this.pings.at(-1) ?? []).buffer;
  }
}

function rig() {
  const clock = new FakeClock();
  const times: number[] = [];
  const roundTrips = new RoundTrips<PingedSocket>({ clock, onRoundTrip: (ms) => times.push(ms) });
  return { clock, times, roundTrips };
}

it("RoundTrips: a socket is pinged when it opens and every 20 s, and each ping's answer counts once", () => {
  const { clock, times, roundTrips } = rig();
  const socket = new PingedSocket();
  roundTrips.opened(socket);
  clock.advance(30);
  roundTrips.answered(socket, socket.answer);
  roundTrips.answered(socket, socket.answer);
  expect(times).toEqual([30]);
  clock.advance(20_000);
  expect(socket.pings).toHaveLength(2);
  clock.advance(20_000);
  expect(socket.pings).toHaveLength(3);
});

it("RoundTrips: pongs that answer no ping of these count for nothing", () => {
  const { clock, times, roundTrips } = rig();
  const socket = new PingedSocket();
  const stranger = new PingedSocket();
  roundTrips.opened(socket);
  const former = socket.answer;
  clock.advance(20_000);
  for (const pong of [former, new ArrayBuffer(0), new ArrayBuffer(8), new ArrayBuffer(125)]) {
    roundTrips.answered(socket, pong);
  }
  roundTrips.answered(stranger, socket.answer);
  expect(times).toEqual([]);
});

it("RoundTrips: sockets share the 20 s out, by one timer, which ends with the last of them", () => {
  const { clock, roundTrips } = rig();
  const sockets = Array.from({ length: 100 }, () => new PingedSocket());
  for (const socket of sockets) roundTrips.opened(socket);
  const pinged = (): number => sockets.reduce((sum, { pings }) => sum + pings.length, 0);
  expect([pinged(), clock.pending]).toEqual([100, 1]);
  clock.advance(1000);
  expect(pinged()).toBe(105);
  clock.advance(19_000);
  expect(sockets.map(({ pings }) => pings.length)).toEqual(sockets.map(() => 2));
  for (const socket of sockets) roundTrips.closed(socket);
  roundTrips.closed(sockets[0] ?? new PingedSocket());
  expect(clock.pending).toBe(0);
});

it("RoundTrips: a ping that ends its socket, the last one, ends the timer", () => {
  const { clock, roundTrips } = rig();
  const socket = new PingedSocket();
  roundTrips.opened(socket);
  socket.ping = () => roundTrips.closed(socket);
  clock.advance(40_000);
  expect(clock.pending).toBe(0);
});
