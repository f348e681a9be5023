/** What is asked of every service on a WebSocket, against its scripted one. */
import { expect, it } from "vitest";
import { until } from "../../helpers/until.ts";
import { type SocketScript, startFakeSocket } from "../../kit/vendors/fake-socket.ts";
import { Recorder } from "../../unit/upstream/rig.ts";
import { asked, configOf, serviceAt, speech, TEXT } from "./rig.ts";
import type { TimedService } from "./timed-services.ts";

/** Rows of tests. */
export function behavesAsSocket({ service, socket, key, voice, nativeRate }: TimedService): void {
  const request = speech(voice, { outputFormat: `pcm_${nativeRate}` });

  it("has a socket for each request, and closes it at the end of the answer", async () => {
    await using vendor = await startFakeSocket(socket?.() ?? (() => null));
    await using upstream = serviceAt(configOf(service, vendor.url, { key }));
    const both = await Promise.all([asked(upstream, request), asked(upstream, request)]);
    expect(both.map(({ failure }) => failure)).toEqual([null, null]);
    expect(both.map(({ calls }) => calls[0])).toEqual(["sent", "sent"]);
    await until("the end of both", () => vendor.open() === 0);
    expect(vendor.requests).toHaveLength(2);
    expect(vendor.closeCodes).toEqual([1000, 1000]);
    expect(upstream.stats()).toMatchObject({ open: 0, connected: 0 });
  });

  it("an abort cuts the socket, and nothing more is heard", async () => {
    await using vendor = await startFakeSocket(socket?.({ fault: "stall" }) ?? (() => null));
    await using upstream = serviceAt(configOf(service, vendor.url, { key }));
    const recorder = new Recorder();
    const synthesis = upstream.open(request, recorder);
    await until("some audio", () => recorder.bytes > 0);
    synthesis.abort();
    await until("the end of the socket", () => vendor.open() === 0);
    expect(recorder.isOver).toBe(false);
    expect(upstream.stats()).toMatchObject({ open: 0, connected: 0 });
    expect(upstream.region().isHealthy).toBe(true);
  });

  it("a pause holds what comes, and nothing is lost", async () => {
    await using vendor = await startFakeSocket(socket?.() ?? (() => null));
    await using upstream = serviceAt(configOf(service, vendor.url, { key }), 200);
    const whole = await asked(upstream, request);
    const recorder = new Recorder();
    const synthesis = upstream.open(request, recorder);
    recorder.onChunk = () => synthesis.pause();
    await until("some audio", () => recorder.chunks.length > 0);
    const { length } = recorder.chunks;
    // Longer than a silence may be.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(recorder.chunks.length).toBe(length);
    expect(recorder.isOver).toBe(false);
    recorder.onChunk = null;
    synthesis.resume();
    await recorder.over();
    expect(recorder.failure).toBeNull();
    expect(recorder.audio.equals(whole.audio)).toBe(true);
  });

  it("one that is turned away is asked again, while there is patience", async () => {
    let count = 0;
    const script: SocketScript = (asking) => {
      if (asking.messages.length === 0) count += 1;
      return count === 1 ? { status: 429, headers: { "retry-after": "0" } } : (socket?.()(asking) ?? null);
    };
    await using vendor = await startFakeSocket(script);
    await using upstream = serviceAt(configOf(service, vendor.url, { key }), 10_000, 10_000);
    const recorder = await asked(upstream, request);
    expect(recorder.failure).toBeNull();
    expect(recorder.calls.slice(0, 3)).toEqual(["sent", "turned away", "sent"]);
    expect(count).toBe(2);
  });

  it("the text of a refused handshake is read up to a bound", async () => {
    const body = [`{"message":"${"x".repeat(1024 * 1024)}"}`];
    await using vendor = await startFakeSocket(() => ({ status: 503, body }));
    await using upstream = serviceAt(configOf(service, vendor.url, { key }));
    const recorder = await asked(upstream, request);
    expect(recorder.failure).toMatchObject({ code: "upstream_failed" });
    expect(upstream.stats()).toMatchObject({ open: 0, connected: 0 });
  });

  it("says whether it is there", async () => {
    await using vendor = await startFakeSocket(socket?.() ?? (() => null));
    await using upstream = serviceAt(configOf(service, vendor.url, { key }));
    expect(await upstream.check()).toBe(200);
    await until("the end of the socket", () => vendor.open() === 0);
  });

  it.each([
    ["1011", 1011, "upstream_failed"],
    ["4401", 4401, "upstream_unauthorized"],
    ["4429", 4429, "upstream_rate_limited"],
    ["1000", 1000, "upstream_truncated"],
  ])("a socket that is closed with %s before a word", async (_, code, expected) => {
    await using vendor = await startFakeSocket(({ messages }) =>
      messages.length === 0 ? null : { body: [{ close: code }] },
    );
    await using upstream = serviceAt(configOf(service, vendor.url, { key }));
    const recorder = await asked(upstream, request);
    expect(recorder.failure).toMatchObject({ code: expected });
    expect(recorder.failure?.message).not.toContain(TEXT.slice(0, 20));
  });
}
