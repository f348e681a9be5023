import { expect, it } from "vitest";
import { Seats } from "../../../src/service/seats.ts";

it("seats so many, lets so many wait in order, and refuses more", async () => {
  const seats = new Seats({ limit: 1, maxWaiting: 2 });
  const { signal } = new AbortController();
  const order: string[] = [];
  const leave = await seats.enter(signal);
  const wait = (name: string) =>
    seats.enter(signal).then((leaveToo) => {
      order.push(name);
      leaveToo();
    });
  const waiting = [wait("first"), wait("second")];
  await expect(seats.enter(signal)).rejects.toMatchObject({ code: "queue_full" });
  leave();
  leave();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
  expect(seats.taken).toBe(0);
});

it("forgets who gave up waiting", async () => {
  const seats = new Seats({ limit: 1, maxWaiting: 1 });
  const controller = new AbortController();
  const leave = await seats.enter(new AbortController().signal);
  const given = seats.enter(controller.signal);
  controller.abort(new Error("gone"));
  await expect(given).rejects.toThrow("gone");
  leave();
  expect(seats.taken).toBe(0);
});

it("lets one who had a seat before go first, and does not turn it away", async () => {
  const seats = new Seats({ limit: 1, maxWaiting: 1 });
  const { signal } = new AbortController();
  const order: string[] = [];
  const leave = await seats.enter(signal);
  const wait = (name: string, isReturning: boolean) =>
    seats.enter(signal, { isReturning }).then((leaveToo) => {
      order.push(name);
      leaveToo();
    });
  const first = wait("never had one", false);
  expect(seats.isFull).toBe(true);
  const second = wait("had one", true);
  expect(seats.waiting).toBe(2);
  leave();
  await Promise.all([first, second]);
  expect(order).toEqual(["had one", "never had one"]);
  expect(seats.waiting).toBe(0);
});
