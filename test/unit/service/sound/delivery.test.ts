import { EventEmitter } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Outlet } from "../../../../src/service/http/speech/delivery.ts";
import { deliverSound } from "../../../../src/service/sound/delivery.ts";
import { planSound } from "../../../../src/service/sound/plan.ts";
import { type Place, SoundQueue } from "../../../../src/service/sound/queue.ts";

/** A response whose client takes as much as the test says. */
class FakeResponse extends EventEmitter implements Outlet {
  destroyed = false;
  headersSent = false;
  hasEnded = false;
  bytes = 0;
  takes = true;

  writeHead(): void {
    this.headersSent = true;
  }
  write(bytes: string | Uint8Array): boolean {
    this.bytes += bytes.length;
    return this.takes;
  }
  end(): void {
    this.hasEnded = true;
  }
  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

function start(response: FakeResponse, queue: SoundQueue, place = queue.enter() as Place): Promise<void> {
  const plan = planSound({ text: "beep", durationSeconds: 2, influence: 1, isLooped: false });
  return deliverSound({
    plan,
    outputFormat: "pcm_44100",
    response,
    headers: {},
    place,
    onMade: () => undefined,
  });
}

afterEach(() => vi.useRealTimers());

describe("deliverSound", () => {
  it("waits for the client, lends its place meanwhile, and goes on", async () => {
    const queue = new SoundQueue({ making: 1, waiting: 9, open: 9 });
    const response = new FakeResponse();
    response.takes = false;
    const delivered = start(response, queue);
    await vi.waitFor(() => expect(response.bytes).toBeGreaterThan(0));
    const before = response.bytes;
    expect(before).toBeLessThan(20_000);
    expect(queue.making).toBe(0);
    // Another one is made from beginning to end while this one waits.
    const other = new FakeResponse();
    await start(other, queue);
    expect(other).toMatchObject({ bytes: 2 * 44_100 * 2, hasEnded: true });
    expect(response.bytes).toBe(before);
    response.takes = true;
    response.emit("drain");
    await delivered;
    expect(response).toMatchObject({ bytes: 2 * 44_100 * 2, hasEnded: true });
    expect(queue.open).toBe(0);
    expect(response.listenerCount("close") + response.listenerCount("drain")).toBe(0);
  });

  it("ends when the client leaves: before, while it waits in line, and in the middle", async () => {
    const queue = new SoundQueue({ making: 1, waiting: 9, open: 9 });
    const gone = new FakeResponse();
    gone.destroyed = true;
    await start(gone, queue);
    const [first, second] = [new FakeResponse(), new FakeResponse()];
    first.takes = false;
    const places = [queue.enter(), queue.enter()] as Place[];
    const all = [start(first, queue, places[0]), start(second, queue, places[1])];
    second.destroy();
    await all[1];
    await vi.waitFor(() => expect(first.bytes).toBeGreaterThan(0));
    first.destroy();
    await all[0];
    expect([gone, second].map(({ headersSent }) => headersSent)).toEqual([false, false]);
    expect(first.hasEnded).toBe(false);
    expect([queue.open, queue.making]).toEqual([0, 0]);
  });

  it("gives up a client that takes nothing for a minute", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const queue = new SoundQueue({ making: 1, waiting: 9, open: 9 });
    const response = new FakeResponse();
    response.takes = false;
    const delivered = start(response, queue);
    while (response.bytes === 0) await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(60_000);
    await delivered;
    expect(response.destroyed).toBe(true);
    expect(queue.open).toBe(0);
  });

  it("rejects while nothing has been sent", async () => {
    const queue = new SoundQueue({ making: 1, waiting: 9, open: 9 });
    const plan = planSound({ text: "beep", durationSeconds: 1, influence: 1, isLooped: false });
    const place = queue.enter() as Place;
    const response = new FakeResponse();
    const onMade = vi.fn();
    const delivered = deliverSound({ plan, outputFormat: "none", response, headers: {}, place, onMade });
    await expect(delivered).rejects.toMatchObject({ code: "unknown_format" });
    expect(onMade).not.toHaveBeenCalled();
    expect(queue.open).toBe(0);
  });
});
