/** What is asked of every service that has times of words, against its scripted one. */
import { expect, it } from "vitest";
import type { ErrorCode } from "../../../src/errors.ts";
import type { ServiceConfig } from "../../../src/upstream/services/service-config.ts";
import type { FakeScript } from "../../helpers/fake-answer.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { type SocketScript, startFakeSocket } from "../../kit/vendors/fake-socket.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import type { TimedFault, TimedOptions } from "../../kit/vendors/timed-steps.ts";
import { asked, charactersOf, configOf, serviceAt, speech, TEXT, wordTimes } from "./rig.ts";

export interface TimedService {
  readonly service: string;
  /** Over HTTP, or on a WebSocket. */
  readonly script?: (options?: TimedOptions) => FakeScript;
  readonly socket?: (options?: TimedOptions) => SocketScript;
  readonly key: string;
  readonly voice: string;
  /** Hz: what PCM is native. */
  readonly nativeRate: number;
  /** Each of its lines is a chunk of its own, which may begin with a WAV header. */
  readonly hasChunks?: boolean;
  /** What a voice that it does not know is, where its refusal has no word for that. */
  readonly unknownVoice?: { readonly code: ErrorCode; readonly hint: RegExp };
  /** Codes that are others than usual. */
  readonly codes?: Partial<Record<TimedFault, string>>;
}

/** The scripted service, and what it was asked first. */
async function startVendor({ script, socket }: TimedService, options: TimedOptions) {
  if (socket !== undefined) {
    const vendor = await startFakeSocket(socket(options));
    const first = () => vendor.requests[0];
    return Object.assign(vendor, {
      first: () => {
        const request = first();
        return (
          request && { ...request, text: request.messages.join("\n"), json: jsonOf(request.messages[0]) }
        );
      },
    });
  }
  const vendor = await startFakeUpstream(script?.(options));
  return Object.assign(vendor, { first: () => vendor.requests[0] });
}

function jsonOf(message: string | undefined): unknown {
  return message?.startsWith("{") === true ? JSON.parse(message) : undefined;
}

export function timedService(timed: TimedService) {
  const { service, key, voice, nativeRate, codes = {} } = timed;
  return async function said(
    options: TimedOptions = {},
    more: Parameters<typeof speech>[1] = {},
    settings: Partial<ServiceConfig> & { timeoutMs?: number } = {},
  ) {
    const { timeoutMs, ...config } = settings;
    await using vendor = await startVendor(timed, options);
    await using upstream = serviceAt(configOf(service, vendor.url, { key, ...config }), timeoutMs);
    const recorder = await asked(upstream, speech(voice, { outputFormat: `pcm_${nativeRate}`, ...more }));
    return { recorder, request: vendor.first(), codes };
  };
}

/** Rows of tests. */
export function behavesAsTimed(service: TimedService): void {
  const said = timedService(service);
  const { nativeRate, codes = {}, key } = service;
  const truth = speak(TEXT, { sampleRate: nativeRate });

  it("speaks PCM to the sample, with each word at its time", async () => {
    const { recorder } = await said();
    expect(recorder.failure).toBeNull();
    expect(recorder.audio.equals(bytesOf(truth.pcm))).toBe(true);
    const words = wordTimes(recorder, TEXT);
    expect(words.map(({ text }) => text)).toEqual(truth.words.map(({ text }) => text));
    for (const [index, { start, end }] of truth.words.entries()) {
      expect(words[index]?.start).toBeCloseTo(start, 6);
      expect(words[index]?.end).toBeCloseTo(end, 6);
    }
  });

  it.each(["ulaw_8000", "pcm_16000", "opus_48000_64"])(
    "speaks %s, as long as its words",
    async (outputFormat) => {
      const { recorder } = await said({}, { outputFormat });
      expect(recorder.failure).toBeNull();
      const bytesPerSecond = { ulaw_8000: 8000, pcm_16000: 32_000 }[outputFormat];
      if (bytesPerSecond === undefined) expect(recorder.audio.toString("latin1", 0, 4)).toBe("OggS");
      else expect(recorder.bytes / bytesPerSecond).toBeCloseTo(truth.seconds, 2);
    },
  );

  if (service.hasChunks === true) {
    it.each(["header on each chunk", "header on each later chunk"] as const)(
      "no WAV %s is played",
      async (fault) => {
        const { recorder } = await said({ fault });
        expect(recorder.failure).toBeNull();
        expect(recorder.audio.equals(bytesOf(truth.pcm))).toBe(true);
      },
    );
  }

  it("times on lines of their own, behind all audio", async () => {
    const { recorder } = await said({ fault: "times behind the audio" });
    const starts = wordTimes(recorder, TEXT).map(({ start }) => start);
    expect(starts).toEqual(truth.words.map(({ start }) => expect.closeTo(start, 6)));
  });

  it("a number that is written out stands at its place, and the words behind it at theirs", async () => {
    const text = "I have 25 cats, and 3 dogs.";
    const say = "I have twenty five cats and three dogs".split(" ");
    const { recorder } = await said({ say }, { text });
    const spoken = speak(text, { sampleRate: nativeRate, say }).words;
    const words = wordTimes(recorder, text);
    const expected = [0, 1, [2, 3], 4, 5, 6, 7].map((place) => {
      const [first = 0, last = 0] = typeof place === "number" ? [place, place] : place;
      return [spoken[first]?.start, spoken[last]?.end];
    });
    for (const [index, [start = 0, end = 0]] of expected.entries()) {
      expect(words[index]?.start).toBeCloseTo(start, 6);
      expect(words[index]?.end).toBeCloseTo(end, 6);
    }
  });

  it("several words that it says in other words get no times, and those around them their own", async () => {
    const text = "The fox jumps over the dog.";
    const say = "The animal hops over the dog".split(" ");
    const { recorder } = await said({ say }, { text });
    expect(recorder.isEnded).toBe(true);
    const spoken = speak(text, { sampleRate: nativeRate, say }).words;
    for (const [index, { start }] of wordTimes(recorder, text).entries()) {
      if (index === 1 || index === 2) expect(start).toBeNaN();
      else expect(start).toBeCloseTo(spoken[index]?.start ?? Number.NaN, 6);
    }
  });

  it("no times: none are made up", async () => {
    const { recorder } = await said({ fault: "no times" });
    expect(recorder.isEnded).toBe(true);
    expect(charactersOf(recorder.chunks)).toEqual([]);
  });

  it("times that go back are not believed, nor any behind them", async () => {
    const { recorder } = await said({ fault: "times go back" });
    expect(recorder.isEnded).toBe(true);
    const known = charactersOf(recorder.chunks).filter(({ start }) => !Number.isNaN(start));
    expect(known.length).toBeGreaterThan(10);
    expect(known.every(({ start }, index) => start >= (known[index - 1]?.start ?? 0))).toBe(true);
    expect(Math.max(...known.map(({ end }) => end))).toBeLessThan(1.6);
  });

  it("times that are missing leave words without times", async () => {
    const { recorder } = await said({ fault: "times short" });
    expect(recorder.isEnded).toBe(true);
    expect(charactersOf(recorder.chunks).every(({ start }) => Number.isNaN(start))).toBe(true);
  });

  it.each([
    ["error after 200", "upstream_failed", /failed|in the middle of its answer/],
    ["no end", "upstream_truncated", /ended the speech early: .* \(ask again; its log may say why\)/],
    ["words missing", "upstream_truncated", /the last words are missing \(ask again/],
    ["empty", "upstream_truncated", /its log may say why/],
    ["html", "upstream_not_speech", /check its url/],
    ["not json", "upstream_protocol", /can't be read/],
    ["another rate", "upstream_audio_rate", /Set the service to the rate/],
    ["half the rate", "upstream_truncated", /at another rate than it says/],
    ["reset", "upstream_truncated", /ask again for the rest/],
    ["too many", "upstream_rate_limited", /at its limit/],
  ] as const)("%s: %s, with what to do", async (fault, usual, hint) => {
    const { recorder } = await said({ fault });
    expect(recorder.failure).toMatchObject({ code: codes[fault] ?? usual });
    expect(recorder.failure?.message).toMatch(hint);
    expect(recorder.failure?.message).not.toContain("quick");
    if (key !== "") expect(recorder.failure?.message).not.toContain(key);
  });

  it("long silence behind the last word is no other rate", async () => {
    const { recorder } = await said({ fault: "silence behind" });
    expect(recorder.failure).toBeNull();
    expect(recorder.isEnded).toBe(true);
  });

  it("a stall ends with upstream_timeout", async () => {
    const { recorder } = await said({ fault: "stall" }, {}, { timeoutMs: 150 });
    expect(recorder.failure).toMatchObject({ code: "upstream_timeout" });
  });

  it("a voice that it does not know is refused", async () => {
    const { recorder } = await said({}, { voiceId: "nobody" });
    const { code = "unknown_voice", hint = /expected one that GET \/voices lists/ } =
      service.unknownVoice ?? {};
    expect(recorder.failure).toMatchObject({
      code,
      ...(code === "unknown_voice" ? { field: "voice_id" } : {}),
    });
    expect(recorder.failure?.message).toMatch(hint);
  });

  if (key === "") return;
  it("a key that it refuses", async () => {
    const { recorder } = await said({}, {}, { key: "another-key-0123456789" });
    expect(recorder.failure).toMatchObject({ code: "upstream_unauthorized" });
    expect(recorder.failure?.message).toContain("key-env");
  });
}
