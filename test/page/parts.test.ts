/** The page's small pure parts, each by what it promises. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ERRORS } from "../../src/errors.ts";
import { voiceOf } from "../../src/page/catalog.ts";
import { backoffMs } from "../../src/page/gateway-link.ts";
import { inPlainWords, waitingInPlainWords } from "../../src/page/plain-words.ts";
import { listenerAddress, routeOf, sessionAddress } from "../../src/page/route.ts";
import { SoundLatency } from "../../src/page/sound-latency.ts";
import { tokensOf } from "../../src/page/tokens.ts";
import { formatMs, rowOf, scaleMs, shortened } from "../../src/page/waterfall.ts";
import { WaveHistory } from "../../src/page/wave-history.ts";

describe("WaveHistory", () => {
  it("add() gives the same bars however the samples are split at bar borders, and their loudness", () => {
    const samples = Float32Array.from(
      { length: 48_000 },
      (_, index) => Math.sin(index / 9) * (index / 48_000),
    );
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 49 }), { maxLength: 20 }), (cuts) => {
        const whole = new WaveHistory();
        const cut = new WaveHistory();
        whole.add(samples, 400);
        const borders = [0, ...cuts.sort((a, b) => a - b), 50];
        for (let part = 1; part < borders.length; part += 1) {
          const from = borders[part - 1] ?? 0;
          cut.add(samples.subarray(from * 960, (borders[part] ?? 0) * 960), 400 + from * 20);
        }
        for (let bar = 20; bar < 70; bar += 1) expect(cut.peak(bar)).not.toBeNull();
        expect(cut.peak(69)).toBe(whole.peak(69));
        expect(cut.rms).toBeCloseTo(whole.rms, 6);
      }),
    );
  });

  it("peak() is null where nothing was decoded and after clear()", () => {
    const wave = new WaveHistory();
    wave.add(new Float32Array(960).fill(-0.5), 100);
    expect([wave.peak(4), wave.peak(5), wave.peak(6)]).toEqual([null, 0.5, null]);
    wave.clear();
    expect(wave.peak(5)).toBeNull();
  });

  it("peak() forgets what is older than its memory", () => {
    const wave = new WaveHistory();
    wave.add(new Float32Array(960).fill(1), 0);
    wave.add(new Float32Array(960).fill(0.25), 4096 * 20);
    expect(wave.peak(0)).toBeNull();
    expect(wave.peak(4096)).toBe(0.25);
  });
});

describe("SoundLatency", () => {
  it("take() tells network, decoding and playout of the first frame that holds the utterance's start", () => {
    const latency = new SoundLatency();
    latency.sent("a", 1000);
    latency.started("a", 500);
    latency.frame(500, 1040);
    latency.frame(520, 1050);
    latency.frame(540, 1055);
    latency.block(500, 1051, 10);
    latency.block(520, 1053, 80);
    latency.block(540, 1056, 100);
    expect(latency.take("a")).toEqual({ sentToFrameMs: 50, decodeMs: 3, playoutMs: 80 });
    expect(latency.take("a")).toBeNull();
  });

  it("take() leaves the network out where another tab spoke", () => {
    const latency = new SoundLatency();
    latency.started("b", 0);
    latency.frame(20, 5);
    latency.block(20, 6, 60);
    expect(latency.take("b")).toEqual({ sentToFrameMs: null, decodeMs: 1, playoutMs: 60 });
  });
});

describe("waterfall", () => {
  const gateway = {
    queued_ms: 1,
    headers_ms: 10,
    first_byte_ms: 20,
    first_frame_ms: 4,
    total_ms: 35,
    leading_silence_ms: 12,
  };

  it("rowOf() adds the browser's stages to the gateway's, without counting any twice", () => {
    const browser = { sentToFrameMs: 42, decodeMs: 2, playoutMs: 70 };
    const row = rowOf({ label: "x", gateway, browser, ahead: 0 });
    expect(row.stagesMs).toEqual([1, 10, 20, 4, 7, 2, 70]);
    expect(row.totalMs).toBe(114);
  });

  it("rowOf() leaves out what was not measured", () => {
    expect(rowOf({ label: "x", gateway, browser: null, ahead: 0 }).stagesMs).toEqual([
      1,
      10,
      20,
      4,
      null,
      null,
      null,
    ]);
  });

  it("scaleMs() goes by the rows that did not wait for others", () => {
    const quick = rowOf({
      label: "x",
      gateway,
      browser: { sentToFrameMs: 100, decodeMs: 0, playoutMs: 0 },
      ahead: 0,
    });
    const waited = rowOf({ label: "x", gateway: { ...gateway, queued_ms: 9000 }, browser: null, ahead: 2 });
    expect(scaleMs([quick, waited])).toBe(quick.totalMs);
  });

  it("formatMs() shows as many digits as help", () => {
    expect([formatMs(0), formatMs(1.26), formatMs(41.6), formatMs(2410)]).toEqual([
      "0 ms",
      "1.3 ms",
      "42 ms",
      "2.41 s",
    ]);
  });
});

describe("tokensOf()", () => {
  it("joins to the very text, and never cuts a surrogate pair", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
        const tokens = tokensOf(text);
        expect(tokens.join("")).toBe(text);
        for (const token of tokens) expect(token).not.toMatch(/\p{Surrogate}/u);
      }),
    );
  });

  it("makes pieces of the size of a model's tokens", () => {
    expect(tokensOf("Good evening, everybody.")).toEqual(["Good", " eveni", "ng,", " every", "body."]);
  });
});

describe("route", () => {
  it("routeOf() reads session, role and decoder, and invents a session where none is named", () => {
    expect(routeOf(new URL("http://h/?session=abc&role=listener&decoder=wasm"))).toEqual({
      session: "abc",
      isListener: true,
      isWasmForced: true,
    });
    const route = routeOf(new URL("http://h/"));
    expect(route.session).toMatch(/^[a-z2-9]{8}$/);
    expect(route.isListener).toBe(false);
  });

  it("addresses name the session; the listener's one leaves everything else out", () => {
    const here = new URL("http://h/?decoder=wasm");
    expect(sessionAddress(here, "a b").search).toBe("?decoder=wasm&session=a+b");
    expect(listenerAddress(here, "abc").href).toBe("http://h/?session=abc&role=listener");
  });
});

describe("backoffMs()", () => {
  it("doubles up to ten seconds, and never waits less than half", () => {
    expect([1, 2, 3, 4, 5, 6, 20].map((attempt) => backoffMs(attempt, 1))).toEqual([
      500, 1000, 2000, 4000, 8000, 10_000, 10_000,
    ]);
    expect(backoffMs(3, 0)).toBe(1000);
  });
});

describe("inPlainWords()", () => {
  it("has words and advice of its own for every code that can reach a page", () => {
    const neverHere = [
      "invalid_config",
      "port_in_use",
      "not_found",
      "unknown_session",
      "text_after_end",
      "utterance_id_taken",
    ];
    for (const code of Object.keys(ERRORS)) {
      const plain = inPlainWords({ code, message: "RAW" });
      if (plain === null || neverHere.includes(code)) continue;
      expect(plain.what, code).not.toContain("RAW");
      expect(plain.advice, code).not.toBe("");
    }
  });

  it("says nothing when Stop had nothing to stop, and passes on what it does not know", () => {
    expect(inPlainWords({ code: "nothing_to_interrupt", message: "x" })).toBeNull();
    expect(inPlainWords({ code: "brand_new", message: "Something else" })?.what).toBe(
      "Something else (brand_new)",
    );
  });
});

describe("waitingInPlainWords()", () => {
  it("tells why and when, and nothing when a listener is only there too early", () => {
    const waiting = { attempt: 2, delayMs: 900 };
    expect(waitingInPlainWords({ ...waiting, error: null })).toEqual({
      what: "The gateway does not answer.",
      advice: "Trying again in 0.9 s (attempt 2).",
    });
    const full = { code: "session_limit", message: "x" };
    expect(waitingInPlainWords({ ...waiting, error: full })?.what).toBe("The gateway is full.");
    expect(waitingInPlainWords({ ...waiting, error: { code: "unknown_session", message: "x" } })).toBeNull();
  });
});

describe("shortened()", () => {
  it("keeps whole characters", () => {
    expect(shortened("short", 5)).toBe("short");
    expect(shortened("🎉🎉🎉 party", 4)).toBe("🎉🎉🎉…");
  });
});

describe("voiceOf()", () => {
  it("describes a voice by its labels, and does without them", () => {
    const labels = { descriptive: "calm", accent: "latin_american", gender: "female", language: "es" };
    expect(voiceOf({ voice_id: "v", name: "Lucía", labels })).toEqual({
      id: "v",
      name: "Lucía",
      about: "calm, latin american, female",
      language: "es",
    });
    expect(voiceOf({ voice_id: "v", labels: null })).toEqual({ id: "v", name: "v", about: "", language: "" });
  });
});
