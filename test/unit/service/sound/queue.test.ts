import { describe, expect, it } from "vitest";
import { type Place, SoundQueue } from "../../../../src/service/sound/queue.ts";

/** Enters and asks for its turn; `began` resolves when it has come. */
function come(queue: SoundQueue, name: string, began: string[]): Place {
  const place = queue.enter();
  if (place === undefined) throw new Error(`${name} was refused`);
  void place.resume().then(() => began.push(name));
  return place;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("SoundQueue", () => {
  it("lets jobs up to its limit work, the next ones wait, and refuses more", async () => {
    const queue = new SoundQueue({ making: 2, waiting: 2, open: 99 });
    const began: string[] = [];
    const [a, , c] = ["a", "b", "c", "d"].map((name) => come(queue, name, began));
    expect(queue.enter()).toBeUndefined();
    await settled();
    expect(began).toEqual(["a", "b"]);
    a?.leave();
    a?.leave();
    await settled();
    expect(began).toEqual(["a", "b", "c"]);
    c?.leave();
    await settled();
    expect(began).toEqual(["a", "b", "c", "d"]);
    expect(queue.making).toBe(2);
    expect(queue.open).toBe(2);
  });

  it("forgets one that leaves while it waits", async () => {
    const queue = new SoundQueue({ making: 1, waiting: 2, open: 99 });
    const began: string[] = [];
    const [a, b] = ["a", "b", "c"].map((name) => come(queue, name, began));
    b?.leave();
    a?.leave();
    await settled();
    // Its wait ends too, so that nothing hangs on it.
    expect(began).toEqual(["a", "b", "c"]);
    expect(queue.making).toBe(1);
    expect(queue.open).toBe(1);
  });

  it("gives the turn of one that pauses to another, and lets it go on before those that have not begun", async () => {
    const queue = new SoundQueue({ making: 1, waiting: 2, open: 99 });
    const began: string[] = [];
    const [a, b] = ["a", "b", "c"].map((name) => come(queue, name, began));
    await settled();
    a?.pause();
    void a?.resume().then(() => began.push("a again"));
    await settled();
    expect(began).toEqual(["a", "b"]);
    b?.leave();
    await settled();
    expect(began).toEqual(["a", "b", "a again"]);
    a?.leave();
    await settled();
    expect(began.at(-1)).toBe("c");
  });

  it("bounds those that pause too", () => {
    const queue = new SoundQueue({ making: 1, waiting: 5, open: 3 });
    for (const name of ["a", "b", "c"]) come(queue, name, []).pause();
    expect(queue.enter()).toBeUndefined();
  });
});
