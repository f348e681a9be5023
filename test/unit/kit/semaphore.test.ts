import { expect, it } from "vitest";
import { Semaphore } from "../../../src/kit/semaphore.ts";

it("Semaphore: gives permits up to its limit, lets the next ones wait in order, and refuses more", async () => {
  const semaphore = new Semaphore({ limit: 1, maxWaiting: 2 });
  const { signal } = new AbortController();
  const order: string[] = [];
  const release = await semaphore.acquire(signal);
  const wait = (name: string) =>
    semaphore.acquire(signal).then((releaseToo) => {
      order.push(name);
      releaseToo();
    });
  const waiting = [wait("first"), wait("second")];
  await expect(semaphore.acquire(signal)).rejects.toMatchObject({ code: "queue_full" });
  release();
  release();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
  expect(semaphore.held).toBe(0);
});

it("Semaphore: forgets who gave up waiting", async () => {
  const semaphore = new Semaphore({ limit: 1, maxWaiting: 1 });
  const controller = new AbortController();
  const release = await semaphore.acquire(new AbortController().signal);
  const given = semaphore.acquire(controller.signal);
  controller.abort(new Error("gone"));
  await expect(given).rejects.toThrow("gone");
  release();
  expect(semaphore.held).toBe(0);
});

it("Semaphore: lets one who had a permit before go first, and does not refuse it", async () => {
  const semaphore = new Semaphore({ limit: 1, maxWaiting: 1 });
  const { signal } = new AbortController();
  const order: string[] = [];
  const release = await semaphore.acquire(signal);
  const wait = (name: string, isReturning: boolean) =>
    semaphore.acquire(signal, { isReturning }).then((releaseToo) => {
      order.push(name);
      releaseToo();
    });
  const first = wait("never had one", false);
  expect(semaphore.isFull).toBe(true);
  const second = wait("had one", true);
  expect(semaphore.waiting).toBe(2);
  release();
  await Promise.all([first, second]);
  expect(order).toEqual(["had one", "never had one"]);
  expect(semaphore.waiting).toBe(0);
});

it("Semaphore: reports when a permit is free, not when it goes to the next one", async () => {
  let free = 0;
  const semaphore = new Semaphore({ limit: 1, maxWaiting: 1, onFree: () => free++ });
  const release = semaphore.tryAcquire();
  expect(semaphore.tryAcquire()).toBeNull();
  const next = semaphore.acquire(new AbortController().signal);
  release?.();
  expect(free).toBe(0);
  (await next)();
  expect(free).toBe(1);
  expect(semaphore.tryAcquire()).not.toBeNull();
});
