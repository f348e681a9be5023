import { ElevenLabsClient } from "@elevenlabs/elevenlabs-js";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Receiver } from "./receiver.ts";
import { WebhookRig } from "./rig.ts";

const sdk = new ElevenLabsClient({ apiKey: "unused" });
const MINUTE = 60_000;

let rig: WebhookRig;
let receiver: Receiver;

beforeEach(async () => {
  rig = await WebhookRig.open();
  receiver = await Receiver.start();
  rig.webhooks.start();
});
afterEach(async () => {
  await rig.close();
  await receiver.close();
});

const numberOf = (body: Buffer) => (JSON.parse(body.toString()) as { data: { number: number } }).data.number;
const numbers = () => receiver.received.map(({ body }) => numberOf(body));
const record = (id: string) => {
  const webhook = rig.webhooks.get(id);
  if (webhook === undefined) throw new Error("The webhook is gone");
  return webhook;
};

describe("a delivery", () => {
  it("is a signed POST of the envelope that the official SDK accepts", async () => {
    const { secret } = rig.subscribe(receiver.url);
    expect(rig.emit(7)).toEqual({ enqueued: 1, dropped: 0 });
    const { method, path, headers, body } = await receiver.take();
    expect({ method, path }).toEqual({ method: "POST", path: "/hook?a=1" });
    expect(headers).toMatchObject({
      host: `127.0.0.1:${receiver.port}`,
      "content-type": "application/json",
      "content-length": String(body.length),
      "user-agent": "voicewire",
    });
    const signature = String(headers["elevenlabs-signature"]);
    const event = await sdk.webhooks.constructEvent(body.toString(), signature, secret);
    expect(event).toEqual({
      type: "flows_generation",
      event_timestamp: Math.floor(rig.timeMs / 1000),
      data: { number: 7 },
    });
    await rig.settled(1);
    expect(rig.webhooks.stats).toEqual({ delivered: 1, failed: 0, underWay: 0, dropped: 0 });
  });

  it("has the webhook's own headers, none of which can take the place of ours", async () => {
    const given = {
      Authorization: "Bearer hunter2",
      "X-Tenant": "7",
      "user-agent": "mine",
      HOST: "evil.example",
      "content-length": "1",
      "CONTENT-TYPE": "text/plain",
      "Transfer-Encoding": "chunked",
      "elevenlabs-signature": "t=0,v0=0",
    };
    rig.subscribe(receiver.url, {}, given);
    rig.emit(1);
    const { headers, body } = await receiver.take();
    expect(headers).toMatchObject({
      authorization: "Bearer hunter2",
      "x-tenant": "7",
      "user-agent": "mine",
      host: `127.0.0.1:${receiver.port}`,
      "content-type": "application/json",
      "content-length": String(body.length),
    });
    expect(headers["transfer-encoding"]).toBe(undefined);
    expect(headers["elevenlabs-signature"]).toMatch(/^t=\d{10},v0=[0-9a-f]{64}$/);
  });

  it("goes to each webhook that is subscribed to its kind, and to no other", async () => {
    rig.subscribe(receiver.url);
    rig.subscribe(receiver.url, { events: ["flows", "agent_qa"] });
    rig.subscribe(receiver.url, { events: ["agent_qa"] });
    rig.subscribe(receiver.url, { events: [] });
    expect(rig.emit(1)).toEqual({ enqueued: 2, dropped: 0 });
    expect(rig.webhooks.emit("speech_to_text", "speech_to_text_transcription", {})).toEqual({
      enqueued: 0,
      dropped: 0,
    });
    await rig.settled(2);
    expect(numbers()).toEqual([1, 1]);
  });

  it("comes after the one before it is over, in the order of the events", async () => {
    rig.subscribe(receiver.url);
    receiver.staySilent();
    for (let number = 0; number < 20; number += 1) rig.emit(number);
    for (let number = 0; number < 20; number += 1) {
      const { body, response } = await receiver.take();
      expect(numberOf(body)).toBe(number);
      // The next one waits in the store, whatever time passes.
      expect(receiver.received).toHaveLength(number + 1);
      expect(rig.webhooks.stats.underWay).toBe(1);
      response.end();
    }
    await rig.settled(20);
  });

  it("is one of at most eight under way, and slow receivers take turns with the others", async () => {
    const webhooks = Array.from({ length: 8 }, () => rig.subscribe(receiver.url));
    receiver.staySilent();
    for (let number = 0; number < 3; number += 1) rig.emit(number);
    const first = await Promise.all(Array.from({ length: 8 }, () => receiver.take()));
    expect(first.map(({ body }) => numberOf(body))).toEqual(Array(8).fill(0));
    webhooks.push(rig.subscribe(receiver.url), rig.subscribe(receiver.url));
    rig.emit(3);
    expect(rig.webhooks.stats.underWay).toBe(8);
    expect(receiver.received).toHaveLength(8);
    // The two that were not served yet come before the older events of those that were.
    first[0]?.response.end();
    first[1]?.response.end();
    const next = [await receiver.take(), await receiver.take()];
    expect(next.map(({ body }) => numberOf(body))).toEqual([3, 3]);
    expect(rig.webhooks.stats.underWay).toBe(8);
    receiver.answerWith(200);
    for (const { response } of [...first.slice(2), ...next]) response.end();
    await rig.settled(34);
    expect(webhooks.map(({ id }) => rig.webhooks.pending(id))).toEqual(Array(10).fill(0));
  });

  it("leaves nothing open behind it, whether it was answered or not", async () => {
    rig.subscribe(receiver.url);
    rig.emit(1);
    await rig.settled(1);
    receiver.staySilent();
    rig.emit(2);
    await receiver.take();
    await receiver.take();
    rig.clock.advance(10_000);
    await rig.settled(2);
    await vi.waitFor(() => expect(receiver.open).toBe(0));
    expect(rig.clock.pending).toBe(0);
  });

  it("is never in the log, nor are secrets, headers or addresses", async () => {
    const { secret } = rig.subscribe(`${receiver.url}&token=tell-nobody`, {}, { "X-Key": "hunter2" });
    receiver.answerWith(500);
    rig.webhooks.emit("flows", "flows_generation", { text: "private words" });
    await rig.settled(1);
    const logged = rig.logged.join("\n");
    expect(logged).toContain("A webhook was called");
    for (const hidden of [secret, "hunter2", "private words", "tell-nobody"])
      expect(logged).not.toContain(hidden);
  });
});

describe("a failure", () => {
  it.each([204, 302, 400, 404, 410, 500, 503])(
    "with %i is recorded and, without retries, final",
    async (status) => {
      const { id } = rig.subscribe(receiver.url);
      receiver.answerWith(status, { location: receiver.url });
      rig.emit(1);
      await rig.settled(1);
      expect(record(id)).toMatchObject({
        lastFailureCode: status,
        lastFailureUnix: Math.floor(rig.timeMs / 1000),
        failuresInARow: 1,
        lastSuccessUnix: null,
      });
      expect(rig.webhooks.pending(id)).toBe(0);
      expect(rig.clock.pending).toBe(0);
      // A redirect is not followed either.
      expect(receiver.received).toHaveLength(1);
    },
  );

  it("the failure of a receiver that says nothing comes after ten seconds, as 408", async () => {
    const { id } = rig.subscribe(receiver.url);
    receiver.staySilent();
    rig.emit(1);
    await receiver.take();
    rig.clock.advance(9_999);
    expect(rig.webhooks.stats).toMatchObject({ failed: 0, underWay: 1 });
    rig.clock.advance(1);
    await rig.settled(1);
    expect(record(id).lastFailureCode).toBe(408);
  });

  it("the failure of a receiver that can't be reached has no code", async () => {
    const { id } = rig.subscribe(receiver.url);
    await receiver.close();
    rig.emit(1);
    await rig.settled(1);
    expect(record(id)).toMatchObject({ lastFailureCode: null, failuresInARow: 1 });
    expect(record(id).lastFailureUnix).not.toBeNull();
    receiver = await Receiver.start();
  });

  it.each([500, 502, 503, 429, 408])(
    "with %i is tried again with retries on: five tries in all",
    async (status) => {
      const { id, secret } = rig.subscribe(receiver.url, { retryEnabled: true });
      receiver.answerWith(status);
      rig.emit(1);
      await rig.settled(1);
      let tries = 1;
      for (const waitMs of [30_000, 2 * MINUTE, 8 * MINUTE, 30 * MINUTE]) {
        rig.clock.advance(waitMs - 1);
        expect(rig.webhooks.stats.underWay).toBe(0);
        expect(rig.webhooks.pending(id)).toBe(1);
        rig.clock.advance(1);
        expect(rig.webhooks.stats.underWay).toBe(1);
        tries += 1;
        await rig.settled(tries);
      }
      expect(receiver.received).toHaveLength(5);
      expect(rig.webhooks.pending(id)).toBe(0);
      expect(rig.clock.pending).toBe(0);
      const bodies = new Set(receiver.received.map(({ body }) => body.toString("hex")));
      expect(bodies.size).toBe(1);
      // Each try is signed again, or the last would be too old for receivers.
      const signatures = receiver.received.map(({ headers }) => String(headers["elevenlabs-signature"]));
      expect(new Set(signatures).size).toBe(5);
      for (const [index, signature] of signatures.entries()) {
        await sdk.webhooks.constructEvent(String(receiver.received[index]?.body), signature, secret);
      }
    },
  );

  it("that nothing answered, or too late, is tried again as well", async () => {
    rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answer = ({ response }) => response.destroy();
    rig.emit(1);
    await rig.settled(1);
    receiver.staySilent();
    rig.clock.advance(30_000);
    await receiver.take();
    await receiver.take();
    rig.clock.advance(10_000);
    await rig.settled(2);
    receiver.answerWith(200);
    rig.clock.advance(2 * MINUTE);
    await rig.settled(3);
    expect(rig.webhooks.stats).toMatchObject({ delivered: 1, failed: 2 });
  });

  it.each([204, 301, 400, 401, 404, 409, 410, 422])("with %i is final, retries or not", async (status) => {
    const { id } = rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answerWith(status);
    rig.emit(1);
    await rig.settled(1);
    expect(rig.webhooks.pending(id)).toBe(0);
  });

  it("as the name leads to this machine by now is final, and nothing was connected", async () => {
    rig.allowPrivate = false;
    rig.resolve = async () => [{ address: "127.0.0.1", family: 4 }];
    await rig.restart();
    const { id } = rig.subscribe(`https://hooks.example:${receiver.port}/`, { retryEnabled: true });
    rig.emit(1);
    await rig.settled(1);
    expect(record(id)).toMatchObject({ failuresInARow: 1, lastFailureCode: null });
    expect(rig.webhooks.pending(id)).toBe(0);
    expect(receiver.connections).toBe(0);
  });

  it("waits up to a tenth longer or shorter", async () => {
    rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answerWith(500);
    rig.random = 0;
    rig.emit(1);
    await rig.settled(1);
    rig.clock.advance(27_000);
    expect(rig.webhooks.stats.underWay).toBe(1);
    rig.random = 0.999_999_999;
    await rig.settled(2);
    rig.clock.advance(131_999);
    expect(rig.webhooks.stats.underWay).toBe(0);
    rig.clock.advance(1);
    expect(rig.webhooks.stats.underWay).toBe(1);
    await rig.settled(3);
  });

  it("holds up none of the events after it", async () => {
    rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answer = ({ body, response }) => response.writeHead(numberOf(body) === 1 ? 500 : 200).end();
    for (const number of [1, 2, 3]) rig.emit(number);
    await rig.settled(3);
    expect(numbers()).toEqual([1, 2, 3]);
    receiver.answerWith(200);
    rig.clock.advance(30_000);
    await rig.settled(4);
    expect(numbers()).toEqual([1, 2, 3, 1]);
  });

  it("is not tried again once retries were switched off", async () => {
    const { id } = rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answerWith(500);
    rig.emit(1);
    await rig.settled(1);
    rig.change(id, { retryEnabled: false });
    rig.clock.advance(30_000);
    await rig.settled(2);
    expect(rig.webhooks.pending(id)).toBe(0);
  });
});

describe("a queue", () => {
  it("holds a hundred for one webhook; what is too much is dropped and counted", async () => {
    const { id } = rig.subscribe(receiver.url);
    receiver.staySilent();
    for (let number = 0; number < 100; number += 1) {
      expect(rig.emit(number)).toEqual({ enqueued: 1, dropped: 0 });
    }
    const other = rig.subscribe(receiver.url);
    expect(rig.emit(100)).toEqual({ enqueued: 1, dropped: 1 });
    expect(rig.webhooks.pending(id)).toBe(100);
    expect(rig.webhooks.pending(other.id)).toBe(1);
    expect(rig.webhooks.stats.dropped).toBe(1);
    receiver.answerWith(200);
    for (const { response } of [await receiver.take(), await receiver.take()]) response.end();
    await rig.settled(101);
    expect(new Set(numbers())).toEqual(new Set(Array.from({ length: 101 }, (_, number) => number)));
  });

  it("survives a restart: what waited, what waits for its next try, and what was under way", async () => {
    const { id, secret } = rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answerWith(500);
    rig.emit(1);
    await rig.settled(1);
    receiver.staySilent();
    for (const number of [2, 3]) rig.emit(number);
    await receiver.take();
    const cut = await receiver.take();
    expect(numberOf(cut.body)).toBe(2);
    receiver.answerWith(200);
    await rig.restart();
    await rig.settled(2);
    expect(numbers()).toEqual([1, 2, 2, 3]);
    const again = receiver.received[2];
    expect(again?.body.equals(cut.body)).toBe(true);
    await sdk.webhooks.constructEvent(
      String(again?.body),
      String(again?.headers["elevenlabs-signature"]),
      secret,
    );
    // The first one's waiting goes on where it was, its tries are counted on.
    expect(rig.webhooks.pending(id)).toBe(1);
    rig.clock.advance(30_000);
    await rig.settled(3);
    expect(numbers()).toEqual([1, 2, 2, 3, 1]);
    expect(rig.webhooks.pending(id)).toBe(0);
  });

  it("counts tries on after a restart", async () => {
    const { id } = rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answerWith(500);
    rig.emit(1);
    await rig.settled(1);
    for (const waitMs of [30_000, 2 * MINUTE, 8 * MINUTE, 30 * MINUTE]) {
      await rig.restart();
      rig.clock.advance(waitMs);
      await rig.settled(1);
    }
    expect(receiver.received).toHaveLength(5);
    expect(rig.webhooks.pending(id)).toBe(0);
  });

  it("is looked at within a minute where the machine's time was put forward", async () => {
    rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answerWith(500);
    rig.emit(1);
    await rig.settled(1);
    rig.clock.advance(30_000);
    await rig.settled(2);
    rig.skewMs = 2 * MINUTE;
    rig.clock.advance(MINUTE);
    expect(rig.webhooks.stats.underWay).toBe(1);
    await rig.settled(3);
  });

  it("is looked at soon where the machine's time was put back", async () => {
    const { id } = rig.subscribe(receiver.url);
    rig.database.run(
      "INSERT INTO webhook_delivery (webhook_id, body, next_try_ms) VALUES (?, ?, ?)",
      id,
      JSON.stringify({ data: { number: 5 } }),
      rig.timeMs + 24 * 60 * MINUTE,
    );
    await rig.restart();
    await rig.settled(1);
    expect(numbers()).toEqual([5]);
  });

  it("goes with its webhook, and so does the request under way", async () => {
    const { id } = rig.subscribe(receiver.url);
    receiver.staySilent();
    for (const number of [1, 2]) rig.emit(number);
    await receiver.take();
    expect(rig.webhooks.delete(id)).toBe(true);
    await vi.waitFor(() => expect(receiver.open).toBe(0));
    expect(rig.webhooks.stats).toMatchObject({ delivered: 0, failed: 0, underWay: 0 });
    expect(rig.database.all("SELECT * FROM webhook_delivery")).toEqual([]);
    expect(rig.webhooks.delete(id)).toBe(false);
  });

  it("waits out a store that fails", async () => {
    const { id } = rig.subscribe(receiver.url);
    receiver.staySilent();
    rig.emit(1);
    const { response } = await receiver.take();
    rig.database.run("ALTER TABLE webhook_delivery RENAME TO elsewhere");
    response.end();
    await vi.waitFor(() => expect(rig.logged.join("\n")).toContain("can't be"));
    rig.clock.advance(60_000);
    rig.database.run("ALTER TABLE elsewhere RENAME TO webhook_delivery");
    receiver.answerWith(200);
    rig.clock.advance(60_000);
    await vi.waitFor(() => expect(rig.webhooks.pending(id)).toBe(0));
    expect(numbers()).toEqual([1, 1]);
  });

  it("rests after closing, with nothing open", async () => {
    rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answerWith(500);
    rig.emit(1);
    await rig.settled(1);
    receiver.staySilent();
    rig.emit(2);
    await receiver.take();
    await receiver.take();
    await rig.webhooks.close();
    await rig.webhooks.close();
    expect(rig.clock.pending).toBe(0);
    await vi.waitFor(() => expect(receiver.open).toBe(0));
    rig.emit(3);
    rig.clock.advance(60 * MINUTE);
    expect(rig.webhooks.stats.underWay).toBe(0);
  });
});

describe("a webhook", () => {
  it("that nobody ever answered is switched off after ten failures in a row, and is silent then", async () => {
    const { id } = rig.subscribe(receiver.url);
    receiver.answerWith(500);
    for (let number = 1; number <= 9; number += 1) rig.emit(number);
    await rig.settled(9);
    expect(record(id)).toMatchObject({ isAutoDisabled: false, failuresInARow: 9 });
    rig.emit(10);
    await rig.settled(10);
    expect(record(id)).toMatchObject({ isAutoDisabled: true, isDisabled: false });
    expect(rig.emit(11)).toEqual({ enqueued: 0, dropped: 0 });
    expect(rig.logged.join("\n")).toContain("switched off");
  });

  it("that is switched off by failures keeps what waited, and delivers it once it is enabled", async () => {
    const { id } = rig.subscribe(receiver.url);
    receiver.answerWith(500);
    for (let number = 1; number <= 12; number += 1) rig.emit(number);
    await rig.settled(10);
    expect(rig.webhooks.pending(id)).toBe(2);
    rig.clock.advance(120 * MINUTE);
    expect(rig.webhooks.stats.underWay).toBe(0);
    receiver.answerWith(200);
    rig.change(id, { isDisabled: false });
    expect(record(id)).toMatchObject({ isAutoDisabled: false, isDisabled: false, failuresInARow: 0 });
    await rig.settled(12);
    expect(numbers().slice(10)).toEqual([11, 12]);
  });

  it("stays on where it was answered within seven days, and goes off after them", async () => {
    const { id } = rig.subscribe(receiver.url);
    rig.emit(0);
    await rig.settled(1);
    receiver.answerWith(500);
    for (let number = 1; number <= 15; number += 1) rig.emit(number);
    await rig.settled(16);
    expect(record(id)).toMatchObject({ isAutoDisabled: false, failuresInARow: 15 });
    rig.clock.advance(7 * 24 * 60 * MINUTE - 1000);
    rig.emit(16);
    await rig.settled(17);
    expect(record(id).isAutoDisabled).toBe(false);
    rig.clock.advance(3000);
    rig.emit(17);
    await rig.settled(18);
    expect(record(id).isAutoDisabled).toBe(true);
  });

  it("forgets its failures in a row with a success, not with a change of its name", async () => {
    const { id } = rig.subscribe(receiver.url);
    receiver.answerWith(500);
    for (let number = 1; number <= 5; number += 1) rig.emit(number);
    await rig.settled(5);
    rig.change(id, { name: "Other" });
    expect(record(id).failuresInARow).toBe(5);
    receiver.answerWith(200);
    rig.emit(6);
    await rig.settled(6);
    expect(record(id)).toMatchObject({ failuresInARow: 0, lastFailureCode: 500 });
  });

  it("that a person disabled is silent: nothing new is taken, what waited waits", async () => {
    const { id } = rig.subscribe(receiver.url, { retryEnabled: true });
    receiver.answerWith(500);
    rig.emit(1);
    await rig.settled(1);
    rig.change(id, { isDisabled: true });
    expect(rig.emit(2)).toEqual({ enqueued: 0, dropped: 0 });
    rig.clock.advance(60 * MINUTE);
    expect(rig.webhooks.stats.underWay).toBe(0);
    await rig.restart();
    expect(rig.webhooks.stats.underWay).toBe(0);
    expect(rig.webhooks.pending(id)).toBe(1);
    receiver.answerWith(200);
    rig.change(id, { isDisabled: false });
    await rig.settled(1);
    expect(numbers()).toEqual([1, 1]);
  });
});

describe("the bounds", () => {
  it("refuse an event that is too large", () => {
    rig.subscribe(receiver.url);
    const data = { text: "a".repeat(262_144) };
    expect(() => rig.webhooks.emit("flows", "flows_generation", data)).toThrow(/larger than/);
  });
});
