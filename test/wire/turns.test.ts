/**
 * One client brings more legal messages than are handled at once: others are answered between two of them. The clock goes
 * on by a tenth of a millisecond with each look at it, so that it does not matter how fast the machine is.
 */

import { once } from "node:events";
import { expect, it } from "vitest";
import WebSocket from "ws";
import { ERRORS } from "../../src/errors.ts";
import { ByteRoom } from "../../src/kit/byte-room.ts";
import { type Clock, systemClock } from "../../src/kit/clock.ts";
import { createCounters } from "../../src/metrics/counters.ts";
import { FairScheduler } from "../../src/server/sockets/fair-scheduler.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { RawSocket } from "../helpers/raw-socket.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { startCarrierEdge } from "../unit/telephony/carrier-edge.ts";
import { startVendorApp, VendorClient } from "./vendor-rig.ts";

const TOKEN = { type: "text", text: "a", utterance_id: "u" };
const RAISED = { maxTextChars: 200_000, creditChars: 1_000_000 };

function slowClock(): Clock {
  let aheadMs = 0;
  return {
    nowMs: () => {
      aheadMs += 0.1;
      return systemClock.nowMs() + aheadMs;
    },
    at: (atMs, action) => systemClock.at(atMs - aheadMs, action),
  };
}

it("others' messages are handled between those that one read has brought", async () => {
  await using upstream = await startFakeUpstream(speaking());
  await using gateway = await gatewayAt(upstream.url, RAISED, { clock: slowClock() });
  await using calm = await TestClient.connect(gateway, "/live/room?role=speaker&format=none&events=none");
  await using flooder = await RawSocket.connect(
    `${gateway.wsUrl}/live/room?role=speaker&format=none&events=none`,
  );
  // Small enough for one read, and behind it one that differs from the others by those that are ahead of it.
  flooder.send([
    ...Array.from({ length: 600 }, () => TOKEN),
    { type: "speak", text: "Last.", utterance_id: "last" },
  ]);
  calm.send({ type: "speak", text: "Calm.", utterance_id: "calm" });
  const { ahead } = await calm.next("utterance.queued");
  expect(ahead).toBe(1);
  calm.send({ type: "speak", text: "Behind.", utterance_id: "behind" });
  await until("the others wait", () => gateway.counters.messagesWaited > 500);
});

it("sixty thousand tokens and a good-bye: all of them are handled, in order, before it leaves", async () => {
  await using upstream = await startFakeUpstream(speaking());
  await using gateway = await gatewayAt(upstream.url, RAISED, { clock: slowClock() });
  const flooder = await RawSocket.connect(`${gateway.wsUrl}/live/room?role=speaker&format=none&events=none`);
  await using calm = await TestClient.connect(
    gateway,
    "/live/room?role=listener&format=none&events=presence",
  );
  await calm.until(() => calm.eventsOf("presence").some(({ speakers }) => speakers === 1));
  const letters = Array.from({ length: 60_000 }, (_, i) => String.fromCharCode(97 + (i % 26)));
  flooder.send([...letters.map((text) => ({ ...TOKEN, text })), { type: "interrupt", utterance_id: "u" }]);
  flooder.close();
  const { heard, unheard_text } = await calm.next("interrupted");
  expect(`${heard.text}${unheard_text}`).toBe(letters.join(""));
  await calm.until(() => calm.eventsOf("presence").at(-1)?.speakers === 0);
  const order = calm.events.flatMap((event) =>
    event.type === "interrupted" || (event.type === "presence" && event.speakers === 0) ? [event.type] : [],
  );
  expect(order).toEqual(["interrupted", "presence"]);
  expect(gateway.counters.messagesWaited).toBeGreaterThan(50_000);
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  expect(metrics).toContain("voicewire_inbox_bytes 0");
  expect(metrics).toContain("voicewire_inboxes_full_total 0");
});

it("who comes back while its messages still wait goes on behind them, with one text", async () => {
  await using upstream = await startFakeUpstream(speaking());
  await using gateway = await gatewayAt(upstream.url, RAISED, { clock: slowClock() });
  const speaker = "/live/room?role=speaker&format=none&events=none";
  await using calm = await TestClient.connect(gateway, "/live/room?format=none&events=none");
  await calm.next("hello");
  await using half = await RawSocket.connect(`${gateway.wsUrl}${speaker}`);
  const token = await half.returnToken();
  const letters = Array.from({ length: 30_000 }, (_, i) => String.fromCharCode(97 + (i % 26)));
  // Without an id: it is the connection's own text.
  half.send(letters.map((text) => ({ type: "text", text })));
  await until("they wait", () => gateway.counters.messagesWaited > 100);
  // Its end is not seen yet; and one that comes back is gone again before it is greeted.
  const lost = await TestClient.connect(gateway, `${speaker}&resume=${token}`);
  lost.send({ type: "text", text: "1" });
  lost.socket.close(4000);
  await using back = await TestClient.connect(gateway, `${speaker}&resume=${token}`);
  back.send({ type: "text", text: "2" });
  back.send({ type: "end" });
  back.send({ type: "interrupt" });
  const { heard, unheard_text } = await calm.next("interrupted");
  const text = `${heard.text}${unheard_text}`;
  expect(text.slice(-20)).toBe(`${letters.join("").slice(-18)}12`);
  expect(text).toHaveLength(letters.length + 2);
  expect(back.eventsOf("error")).toEqual([]);
});

it("who waits behind its old connection gets the close when the gateway closes, too", async () => {
  await using upstream = await startFakeUpstream(speaking());
  const gateway = await gatewayAt(upstream.url, RAISED, { clock: slowClock() });
  const speaker = "/live/room?role=speaker&format=none&events=none";
  await using half = await RawSocket.connect(`${gateway.wsUrl}${speaker}`);
  const token = await half.returnToken();
  half.send(Array.from({ length: 30_000 }, () => TOKEN));
  await until("they wait", () => gateway.counters.messagesWaited > 100);
  const back = await TestClient.connect(gateway, `${speaker}&resume=${token}`);
  back.send({ type: "ping" });
  await gateway.close();
  expect((await back.untilClosed()).code).toBe(ERRORS.draining.closeCode);
  expect(back.events).toMatchObject([{ type: "error", code: "draining" }]);
});

it("who brings more than may wait gets an error and is closed, and others are not", async () => {
  await using upstream = await startFakeUpstream(speaking());
  // The smallest bound there is: what two reads bring.
  const small = { maxMessageBytes: 1024, maxTextChars: 100 };
  await using gateway = await gatewayAt(upstream.url, small, { clock: slowClock() });
  await using calm = await TestClient.connect(gateway, "/live/calm?format=none&events=none");
  const flooder = await TestClient.connect(gateway, "/live/flood?format=none&events=none");
  expect((await flooder.next("hello")).limits.inbox_bytes).toBe(1_048_576);
  for (let sent = 0; sent < 60_000; sent += 1) flooder.send('{"type":"ping"}');
  expect((await flooder.untilClosed()).code).toBe(ERRORS.inbox_full.closeCode);
  expect(flooder.events.at(-1)).toMatchObject({ type: "error", code: "inbox_full", retry_after_ms: 1000 });
  calm.send({ type: "ping", id: "still there" });
  expect(await calm.next("pong")).toMatchObject({ id: "still there" });
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  expect(metrics).toContain("voicewire_inboxes_full_total 1");
});

it("a vendor socket that brings more than may wait gets the vendor's error", async () => {
  await using upstream = await startFakeUpstream(speaking());
  const counters = createCounters();
  const scheduler = new FairScheduler({
    clock: slowClock(),
    counters,
    between: () => undefined,
    room: new ByteRoom(Number.POSITIVE_INFINITY),
  });
  await using app = await startVendorApp(upstream.url, {
    sockets: { scheduler, limits: { maxTextChars: 1000 } },
  });
  await using client = await VendorClient.connect(app, "/v1/text-to-speech/v/stream-input");
  for (let sent = 0; sent < 60_000; sent += 1) client.socket.send('{"text":" "}        ');
  await until("its end", () => client.end !== null);
  expect(client.end?.code).toBe(1008);
  expect(client.heard.at(-1)).toMatchObject({ error: "invalid_input_message", code: 1008 });
  expect(counters.inboxesFull).toBe(1);
  expect(scheduler.waitingBytes).toBe(0);
});

it("a carrier's connection that brings more than may wait is closed", async () => {
  await using carrier = await startCarrierEdge({ turnsClock: slowClock() });
  const socket = new WebSocket(`${carrier.wsUrl}/carrier/twilio`);
  await once(socket, "open");
  const odd = JSON.stringify({
    event: "connected",
    protocol: "Call",
    version: "1.0.0",
    pad: "x".repeat(1000),
  });
  for (let sent = 0; sent < 6000; sent += 1) socket.send(odd);
  const [code] = (await once(socket, "close")) as [number];
  expect(code).toBe(ERRORS.inbox_full.closeCode);
  expect(carrier.calls.stats.render()).toMatch(/refused.*twilio.* 1$/m);
});
