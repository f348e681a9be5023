/** What one write of an owner costs nats-server, as the simulation of a cluster takes it: counted by the server itself. */
import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import { OWNER_WRITES } from "../../bench/kit/simulation/bus-load.ts";
import { NatsBus } from "../../src/cluster/bus/nats-bus.ts";
import { SessionOwners } from "../../src/cluster/session-owners.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { freePort } from "../helpers/free-port.ts";
import { endNatsServers, IF_NATS_MISSING, isNatsMissing, NatsServer } from "../kit/nats-server.ts";

const WRITES = 50;

afterAll(endNatsServers);

interface Counts {
  readonly in_msgs: number;
  readonly out_msgs: number;
  readonly in_bytes: number;
  readonly out_bytes: number;
}

/** Counts settle when nothing was added for a while. */
async function settledCounts(httpPort: number): Promise<Counts> {
  let last = "";
  for (;;) {
    const { in_msgs, out_msgs, in_bytes, out_bytes } = (await (
      await fetch(`http://127.0.0.1:${httpPort}/varz`)
    ).json()) as Counts;
    const counts: Counts = { in_msgs, out_msgs, in_bytes, out_bytes };
    if (JSON.stringify(counts) === last) return counts;
    last = JSON.stringify(counts);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

describe.skipIf(isNatsMissing)(`writes of owners at nats-server${IF_NATS_MISSING}`, () => {
  it.each([1, 3])(
    "with %i nodes: as many messages as the simulation counts, and about the bytes",
    async (nodes) => {
      const httpPort = await freePort();
      await using server = await NatsServer.start({ config: `http: "127.0.0.1:${httpPort}"` });
      const buses = await Promise.all(
        Array.from({ length: nodes }, () => NatsBus.connect({ url: server.url })),
      );
      const owners = await Promise.all(
        buses.map((bus, at) =>
          SessionOwners.open({
            bus,
            nodes: {
              name: `gateway-${at}`,
              incarnation: randomUUID(),
              find: () => undefined,
              heirOf: () => undefined,
            },
            clock: systemClock,
            onLost: () => undefined,
          }),
        ),
      );
      const [first] = owners;
      const [bus] = buses;
      if (first === undefined || bus === undefined) throw new Error("No node");
      const ids = Array.from({ length: WRITES }, (_, at) => `session-${String(at).padStart(20, "0")}`);
      const perWrite = async (write: () => Promise<void>): Promise<Record<keyof Counts, number>> => {
        const before = await settledCounts(httpPort);
        await write();
        const after = await settledCounts(httpPort);
        const each = (key: keyof Counts): number => (after[key] - before[key]) / WRITES;
        return {
          in_msgs: each("in_msgs"),
          out_msgs: each("out_msgs"),
          in_bytes: each("in_bytes"),
          out_bytes: each("out_bytes"),
        };
      };
      const isAsCounted = (
        counted: Record<keyof Counts, number>,
        write: (typeof OWNER_WRITES)[keyof typeof OWNER_WRITES],
      ): void => {
        // A ping of the connection may come between.
        expect(counted.in_msgs).toBeCloseTo(write.read, 0);
        expect(counted.out_msgs).toBeCloseTo(write.answered + write.eachNode * nodes, 0);
        expect(Math.abs(counted.in_bytes / write.readBytes - 1)).toBeLessThan(0.1);
        const sentBytes = write.answeredBytes + write.eachNodeBytes * nodes;
        expect(Math.abs(counted.out_bytes / sentBytes - 1)).toBeLessThan(0.1);
      };
      isAsCounted(
        await perWrite(async () => {
          for (const id of ids) await first.claim(id);
        }),
        OWNER_WRITES.claim,
      );
      isAsCounted(
        await perWrite(async () => {
          for (const id of ids) first.release(id);
        }),
        OWNER_WRITES.release,
      );
      const lease = (await bus.leases.claim("gateway-0", new TextEncoder().encode(randomUUID()))).entry;
      isAsCounted(
        await perWrite(async () => {
          let held = lease;
          for (let write = 0; write < WRITES; write += 1) {
            const renewed = await bus.leases.renew(held, held.value);
            if (renewed === undefined) throw new Error("The lease is lost");
            held = renewed;
          }
        }),
        OWNER_WRITES.renew,
      );
      for (const one of owners) one.close();
      await Promise.all(buses.map((one) => one.close()));
    },
  );
});
