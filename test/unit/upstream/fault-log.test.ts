/** Faults of the upstream for the operator: ids that are shared for a second, and a bounded memory of them. */
import { expect, it } from "vitest";
import { FaultLog } from "../../../src/upstream/transport/fault-log.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

it("FaultLog: faults of one cause share an id and a line for a second, others have their own", () => {
  const clock = new FakeClock();
  const ids: unknown[] = [];
  const warn = (fields: object) => ids.push("error_id" in fields ? fields.error_id : undefined);
  const faults = new FaultLog({ ...watchedLog, warn }, clock);
  const first = faults.note("Failed", { cause: "ECONNREFUSED", detail: "connect 192.0.2.1" });
  expect(first).toMatch(/^[0-9a-f]{8}$/);
  expect(faults.note("Failed", { cause: "ECONNREFUSED" })).toBe(first);
  const other = faults.note("Failed", { cause: "ETIMEDOUT" });
  clock.advance(1000);
  const later = faults.note("Failed", { cause: "ECONNREFUSED" });
  expect(new Set([first, other, later]).size).toBe(3);
  expect(ids).toEqual([first, other, later]);
});

it("FaultLog: the 33rd cause makes it forget the oldest", () => {
  const faults = new FaultLog(watchedLog, new FakeClock());
  const idOf = (cause: number) => faults.note("Failed", { cause: String(cause) });
  const ids = Array.from({ length: 32 }, (_, cause) => idOf(cause));
  expect([idOf(0), idOf(31)]).toEqual([ids[0], ids[31]]);
  idOf(32);
  expect(idOf(31)).toBe(ids[31]);
  expect(idOf(0)).not.toBe(ids[0]);
});
