/** Rules of jambonz's socket that need a clock turned by hand, or a client that does not read. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { createCounters } from "../../../src/metrics/counters.ts";
import { JambonzTtsSocket } from "../../../src/vendor-sockets/jambonz-tts.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { Asked } from "./socket-rig.ts";

async function rigOf(voice: Promise<string> = Promise.resolve("v1"), modelId = "") {
  const clock = new FakeClock();
  const asked: Asked[] = [];
  const heard: (string | Uint8Array)[] = [];
  const state = { buffered: 0, end: null as number | null };
  const counters = createCounters();
  const socket = new JambonzTtsSocket({
    deps: {
      upstream: {
        open: (request, handlers) => {
          const one = new Asked(request, handlers);
          asked.push(one);
          return one;
        },
      },
      clock,
      counters,
      log: watchedLog,
      limits: {
        maxContexts: 1,
        maxTextChars: 1000,
        maxOutboxBytes: 1000,
        maxRequests: 2,
        timingHoldMs: 0,
        firstAudioMs: 0,
      },
    },
    port: {
      send: (message) => {
        if (state.end !== null) throw new Error("Sent after the close");
        heard.push(message);
      },
      bufferedBytes: () => state.buffered,
      end: (code) => {
        state.end ??= code;
        socket.closed();
      },
    },
    voiceId: voice,
    language: "en-US",
    sampleRate: 16_000,
    modelId,
    pinned: {},
  });
  await voice.catch(() => undefined);
  return {
    socket,
    counters,
    clock,
    asked,
    heard,
    state,
    send: (...messages: readonly object[]) => {
      for (const message of messages) socket.receive(JSON.stringify(message));
    },
    stream: (text: string) => socket.receive(JSON.stringify({ type: "stream", text })),
    texts: () => asked.map(({ text }) => text),
    audioBytes: () => heard.reduce((sum, one) => sum + (typeof one === "string" ? 0 : one.length), 0),
    errors: () =>
      heard.flatMap((one) => (typeof one === "string" && one.includes('"error"') ? [JSON.parse(one)] : [])),
  };
}

describe("text", () => {
  it("is said at the end of a sentence, at a flush, and when the rest does not come", async () => {
    const rig = await rigOf();
    rig.stream("Hello there.");
    expect(rig.texts()).toEqual(["Hello there."]);
    rig.asked[0]?.finish();
    rig.stream("And then");
    expect(rig.asked).toHaveLength(1);
    rig.clock.advance(249);
    rig.stream("the rest");
    rig.clock.advance(249);
    expect(rig.asked).toHaveLength(1);
    rig.clock.advance(1);
    expect(rig.texts()[1]).toBe("And then the rest");
    rig.asked[1]?.finish();
    rig.stream("More");
    rig.send({ type: "flush" });
    expect(rig.texts()[2]).toBe("More");
    expect(rig.clock.pending).toBe(0);
  });

  it("is sent with what was said before it, until a flush; a language only to a model that takes one", async () => {
    const rig = await rigOf(undefined, "eleven_flash_v2_5");
    rig.stream("One.");
    rig.asked[0]?.finish();
    rig.stream("Two.");
    rig.asked[1]?.finish();
    rig.send({ type: "flush" });
    rig.stream("Three.");
    expect(rig.asked.map(({ request }) => "previousText" in request && request.previousText)).toEqual([
      false,
      "One.",
      false,
    ]);
    expect(rig.asked[0]?.request).toMatchObject({ languageCode: "en", modelId: "eleven_flash_v2_5" });
  });

  it("waits for the voice, and then follows connect; blanks and punctuation alone are not asked for", async () => {
    let known: (id: string) => void = () => undefined;
    const voice = new Promise<string>((resolve) => {
      known = resolve;
    });
    const pending = rigOf(voice);
    known("v9");
    const rig = await pending;
    rig.stream(" ");
    rig.stream("...");
    rig.send({ type: "flush" });
    rig.stream("Now.");
    expect(rig.heard[0]).toContain('"connect"');
    expect(rig.asked[0]?.request).toMatchObject({
      voiceId: "v9",
      outputFormat: "pcm_16000",
      wantsTiming: false,
    });
    expect(rig.asked).toHaveLength(1);
  });

  it("that nobody takes is bounded: an error, and the close", async () => {
    const rig = await rigOf();
    rig.stream(`${"a ".repeat(600)}`);
    expect(rig.errors()).toEqual([{ type: "error", error: expect.stringContaining("text_too_long") }]);
    expect(rig.state.end).toBe(1008);
    rig.stream("Hello.");
    expect(rig.asked).toEqual([]);
    expect(rig.clock.pending).toBe(0);
  });
});

describe("an interruption", () => {
  it.each(["stop", "clear"])("by %s drops what was not sent, asked for or not", async (type) => {
    const rig = await rigOf();
    rig.stream("One. Two.");
    rig.asked[0]?.say(4);
    rig.stream("Three.");
    rig.stream("Four.");
    const sent = rig.audioBytes();
    expect(sent).toBeGreaterThan(0);
    // The client does not read: the rest waits here.
    rig.state.buffered = 5000;
    rig.asked[0]?.say(4);
    expect(rig.audioBytes()).toBe(sent);
    rig.stream("Fi");
    rig.send({ type });
    expect(rig.asked.every(({ isAborted }) => isAborted)).toBe(true);
    rig.state.buffered = 0;
    rig.socket.drained();
    rig.clock.advance(10_000);
    expect(rig.audioBytes()).toBe(sent);
    expect(rig.state.end).toBe(type === "stop" ? 1000 : null);
    const before = rig.asked.length;
    rig.stream("Again.");
    expect(rig.texts().slice(before)).toEqual(type === "stop" ? [] : ["Again."]);
  });

  it("by closing ends every request and every timer", async () => {
    const rig = await rigOf();
    rig.stream("One.");
    rig.stream("and");
    rig.socket.closed();
    expect(rig.asked[0]?.isAborted).toBe(true);
    expect(rig.clock.pending).toBe(0);
    expect(rig.errors()).toEqual([]);
  });
});

describe("errors", () => {
  it("errors of the upstream are reported, and the next sentence is spoken", async () => {
    const rig = await rigOf();
    rig.stream("One.");
    rig.stream("Lost.");
    rig.asked[0]?.fail(new GatewayError("upstream_invalid", "Refused"));
    expect(rig.errors()).toEqual([{ type: "error", error: "upstream_invalid: Refused" }]);
    expect(rig.state.end).toBeNull();
    rig.stream("Two.");
    rig.asked.at(-1)?.finish();
    // What waited behind the failure is not asked for.
    expect(rig.texts()).toEqual(["One.", "Two."]);
    expect(rig.audioBytes()).toBe("Two.".length * 10 * 32);
  });

  it("errors of the voice come in the place of connect", async () => {
    const rig = await rigOf(Promise.reject(new GatewayError("unknown_voice", "No such voice")));
    expect(rig.heard).toEqual(['{"type":"error","error":"unknown_voice: No such voice"}']);
    expect(rig.state.end).toBe(1008);
  });
});

describe("what the socket says went wrong", () => {
  it("counts among what was refused where it is the gateway's own, once", async () => {
    const rig = await rigOf();
    rig.stream("One.");
    rig.asked[0]?.fail(new GatewayError("upstream_invalid", "x"));
    rig.stream("Two.");
    rig.asked[1]?.fail(new GatewayError("budget_exhausted", "x"));
    const full = new GatewayError("inbox_full", "x");
    rig.counters.refusals.sent(full);
    rig.socket.refuse(full);
    rig.socket.refuse(new GatewayError("rate_limited", "x"));
    expect(rig.errors()).toHaveLength(3);
    expect([...rig.counters.refusals.byReason]).toEqual([
      ["budget_exhausted", 1],
      ["inbox_full", 1],
    ]);
  });
});
