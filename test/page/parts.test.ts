/** The page's small pure parts, each by what it promises. */
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { ERRORS } from "../../src/errors.ts";
import { plainName, voiceOf } from "../../src/page/catalog.ts";
import { listenerAddress, routeOf, sessionAddress } from "../../src/page/route.ts";
import { SoundLatency } from "../../src/page/sound/sound-latency.ts";
import { WaveHistory } from "../../src/page/sound/wave-history.ts";
import { Captions } from "../../src/page/speech/captions.ts";
import { Resumable } from "../../src/page/speech/resumable.ts";
import { STREAMS } from "../../src/page/speech/streams.ts";
import { evenly, feedTokens, tokensOf } from "../../src/page/speech/tokens.ts";
import { formatMs, rowOf, STAGES, scaleMs, shortened } from "../../src/page/speech/waterfall.ts";
import { inPlainWords, waitingInPlainWords, warningInPlainWords } from "../../src/page/view/plain-words.ts";
import type { CueEvent, InterruptedEvent, UtteranceResumedEvent } from "../../src/protocol/events.ts";

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
  it("take() gives network, decoding and playout of the first frame that holds the utterance's start", () => {
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
    text_ms: 8,
    queued_ms: 1,
    connected_ms: 2,
    headers_ms: 10,
    first_byte_ms: 20,
    first_sound_ms: 3,
    first_frame_ms: 4,
    total_ms: 48,
    leading_silence_ms: 12,
  };
  const shared = { text: "One. Two.", gateway, segments: [], browser: null, ahead: 0 };

  it("rowOf() adds the browser's stages to the gateway's, in their order and without counting any twice", () => {
    const row = rowOf({ ...shared, browser: { sentToFrameMs: 55, decodeMs: 2, playoutMs: 70 } });
    expect(row.stagesMs).toEqual([8, 1, 2, 10, 20, 3, 4, 7, 2, 70]);
    expect(row.stagesMs.length).toBe(STAGES.length);
    expect(row.totalMs).toBe(127);
  });

  it("rowOf() leaves out what was not measured", () => {
    expect(rowOf(shared).stagesMs.slice(7)).toEqual([null, null, null]);
  });

  it("rowOf() has a row for each of several pieces, up to its first sound, and the wait for its turn apart", () => {
    const segments = [
      { ...gateway, start: 0, end: 5 },
      { ...gateway, first_frame_ms: 900, start: 5, end: 9 },
    ];
    expect(rowOf({ ...shared, segments }).segments).toEqual([
      { label: "One.", stagesMs: [8, 1, 2, 10, 20, 3], totalMs: 44, spareMs: 4 },
      { label: "Two.", stagesMs: [8, 1, 2, 10, 20, 3], totalMs: 44, spareMs: 900 },
    ]);
    expect(rowOf({ ...shared, segments: segments.slice(0, 1) }).segments).toEqual([]);
  });

  it("scaleMs() goes by the rows that did not wait for others", () => {
    const quick = rowOf({ ...shared, browser: { sentToFrameMs: 100, decodeMs: 0, playoutMs: 0 } });
    const waited = rowOf({ ...shared, gateway: { ...gateway, queued_ms: 9000 }, ahead: 2 });
    expect(scaleMs([quick, waited])).toBe(quick.totalMs);
  });

  it("formatMs() shows tenths of a few ms, whole ms of more, and hundredths of seconds", () => {
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
    expect(route.session).toMatch(/^[a-z2-9]{16}$/);
    expect(routeOf(new URL("http://h/")).session).not.toBe(route.session);
    expect(route.isListener).toBe(false);
  });

  it("addresses name the session; the listener's one leaves everything else out", () => {
    const here = new URL("http://h/?decoder=wasm");
    expect(sessionAddress(here, "a b").search).toBe("?decoder=wasm&session=a+b");
    expect(listenerAddress(here, "abc").href).toBe("http://h/?session=abc&role=listener");
  });
});

describe("inPlainWords()", () => {
  it("has words and advice of its own for every code that can reach a page", () => {
    const neverHere = [
      "invalid_config",
      "port_in_use",
      "bus_refused",
      "node_name_taken",
      "not_found",
      "unknown_session",
      "text_after_end",
      "utterance_id_taken",
      "unknown_call",
      "carrier_protocol",
      "carrier_unauthorized",
      "carrier_signature",
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

describe("warningInPlainWords()", () => {
  it("has words and advice of its own for what a gateway warns a page of, and passes on what it does not know", () => {
    const codes = [
      "resume_refused",
      "nobody_listens",
      "half_character",
      "unbalanced_markup",
      "settings_ignored",
    ];
    for (const code of codes) {
      const plain = warningInPlainWords({ code, message: "RAW" });
      expect(plain?.what, code).not.toContain("RAW");
      expect(plain?.advice, code).not.toBe("");
    }
    expect(warningInPlainWords({ code: "speech_recovered", message: "RAW" })).toBeNull();
    expect(warningInPlainWords({ code: "brand_new", message: "Something" })).toEqual({
      what: "Something",
      advice: "",
    });
  });
});

describe("waitingInPlainWords()", () => {
  it("says why and when, and nothing when a listener is only there too early", () => {
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
    const shared = { service: null, isOwn: false };
    expect(voiceOf({ voice_id: "v", name: "Lucía", labels, upstream: null })).toEqual({
      ...{ id: "v", name: "Lucía", about: "calm, latin american, female", language: "es", ...shared },
    });
    expect(voiceOf({ voice_id: "v", name: "v", labels: {}, upstream: null })).toEqual({
      ...{ id: "v", name: "v", about: "", language: "", ...shared },
    });
  });

  it("knows other services' voices from the operator's own", () => {
    const kokoro = { voice_id: "kokoro:af_heart", name: "af_heart", labels: {}, upstream: "kokoro" };
    expect(voiceOf(kokoro)).toMatchObject({ service: "kokoro", isOwn: false });
    const own = {
      voice_id: "anna",
      name: "anna",
      labels: {},
      upstream: null,
      spoken_by: ["kokoro:af_heart"],
    };
    expect(voiceOf(own)).toMatchObject({ service: null, isOwn: true });
  });
});

describe("plainName()", () => {
  it.each([
    ["kokoro:af_heart", "af_heart (kokoro)"],
    ["piper:en_US-libritts-high#p123", "en_US-libritts-high#p123 (piper)"],
    ["21m00Tcm4TlvDq8ikWAM", "21m00Tcm4TlvDq8ikWAM"],
    ["anna", "anna"],
  ])("%s is %s", (voiceId, name) => expect(plainName(voiceId)).toBe(name));
});

describe("feedTokens()", () => {
  it("sends every token in order at its moment, waits where the stream says so, and then catches up", async () => {
    vi.useFakeTimers();
    try {
      const sent: [string, number][] = [];
      const beganAtMs = performance.now();
      let goOn: () => void = () => undefined;
      const tokens = evenly(["a", "b", "c", "d"]);
      const ended = new Promise<void>((resolve) => {
        feedTokens(tokens, {
          onToken: (token) => {
            sent.push([token, performance.now() - beganAtMs]);
            return token === "b" ? new Promise((free) => (goOn = free)) : Promise.resolve();
          },
          onEnd: resolve,
        });
      });
      await vi.advanceTimersByTimeAsync(100);
      expect(sent).toEqual([
        ["a", 0],
        ["b", 40],
      ]);
      goOn();
      await vi.advanceTimersByTimeAsync(30);
      await ended;
      expect(sent.slice(2)).toEqual([
        ["c", 100],
        ["d", 120],
      ]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("sends nothing after cancel()", async () => {
    vi.useFakeTimers();
    try {
      const sent: string[] = [];
      const onToken = (token: string) => Promise.resolve(void sent.push(token));
      const feed = feedTokens(evenly(["a", "b"]), { onToken, onEnd: () => sent.push("end") });
      feed.cancel();
      await vi.advanceTimersByTimeAsync(1000);
      expect(sent).toEqual(["a"]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("STREAMS", () => {
  it("have a moment for every token, the first one at once and none before another", () => {
    for (const { name, tokens } of STREAMS) {
      expect(tokens.length, name).toBeGreaterThan(50);
      expect(tokens[0]?.atMs, name).toBe(0);
      for (const [index, token] of tokens.entries()) {
        expect(token.text, name).not.toBe("");
        expect(token.atMs, name).toBeGreaterThanOrEqual(tokens[index - 1]?.atMs ?? 0);
      }
      expect(tokens.at(-1)?.atMs, name).toBeGreaterThan(1000);
    }
  });
});

describe("Captions", () => {
  const cue = (start_ms: number, end_ms: number, text: string, utterance_id = "a"): CueEvent => ({
    type: "cue",
    seq: 1,
    at_ms: start_ms,
    utterance_id,
    start_ms,
    end_ms,
    start: 0,
    end: 1,
    lines: [{ text, words: [] }],
  });

  it("at() is the cue of the moment, through short pauses, whatever the order they came in", () => {
    const captions = new Captions();
    captions.add(cue(1000, 2000, "two"));
    captions.add(cue(0, 900, "one"));
    captions.add(cue(1000, 2000, "two, again"));
    expect([-1, 0, 950, 1000, 2299, 2300].map((atMs) => captions.at(atMs)[0])).toEqual([
      undefined,
      "one",
      "one",
      "two, again",
      "two, again",
      undefined,
    ]);
    captions.clear();
    expect(captions.at(500)).toEqual([]);
  });

  it("cut() takes out what will not be heard, of its own utterance only", () => {
    const captions = new Captions();
    for (const entry of [cue(0, 900, "one"), cue(1000, 2000, "two"), cue(3000, 4000, "other", "b")])
      captions.add(entry);
    captions.cut({ utterance_id: "a", at_ms: 500, next_ms: 500 } as InterruptedEvent);
    expect([400, 700, 1500, 3500].map((atMs) => captions.at(atMs)[0])).toEqual([
      "one",
      "one",
      undefined,
      "other",
    ]);
    expect(captions.at(801)).toEqual([]);
  });
});

describe("Resumable", () => {
  const interrupted = (utterance_id: string, resumable: boolean) =>
    ({ type: "interrupted", utterance_id, resumable }) as InterruptedEvent;

  it("idAt() is the latest that was kept, for as long as it is kept", () => {
    const resumable = new Resumable(() => 1000);
    expect(resumable.idAt(0)).toBeNull();
    resumable.take(interrupted("a", true), 100);
    resumable.take(interrupted("b", false), 100);
    expect([resumable.idAt(1099), resumable.idAt(1100)]).toEqual(["a", null]);
    resumable.take(interrupted("c", true), 2000);
    resumable.take({ type: "utterance.resumed", utterance_id: "c" } as UtteranceResumedEvent, 2100);
    expect(resumable.idAt(2100)).toBeNull();
  });
});
