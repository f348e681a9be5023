/** Requests for a phrase that is on its way: who shares it, at which pace, and how it ends for each. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisRequest,
  Upstream,
} from "../../../src/upstream/types.ts";
import { Asked, bare, type CacheRig, rig, shown, timed } from "./phrase-cache-rig.ts";
import { RAW_SPEECH, Recorder, SPEECH, turns } from "./rig.ts";

interface Reading {
  readonly recorder: Recorder;
  readonly synthesis: Synthesis;
}

function read({ cache }: CacheRig, request: SynthesisRequest = SPEECH): Reading {
  const recorder = new Recorder();
  return { recorder, synthesis: cache.open(request, recorder) };
}

const BROKEN = new GatewayError("upstream_failed", "The upstream failed");

describe("PhraseCache: sharing", () => {
  it("equal requests are one upstream request: each hears all, from the beginning, as it comes", async () => {
    const bench = rig();
    const chunks = [timed(100), timed(200, { startSeconds: 0.4 }), timed(300, { startSeconds: 0.8 })];
    const leader = read(bench);
    bench
      .last()
      .sent()
      .head()
      .chunks(...chunks.slice(0, 2));
    expect(leader.recorder.calls).toEqual(["sent", "head", "chunk"]);
    const follower = read(bench);
    expect(follower.recorder.calls).toEqual([]);
    await turns(1);
    expect(shown(follower.recorder.chunks)).toEqual(shown(chunks.slice(0, 2)));
    bench
      .last()
      .chunks(...chunks.slice(2))
      .end();
    expect(bench.asked).toHaveLength(1);
    for (const { recorder } of [leader, follower]) {
      expect(shown(recorder.chunks)).toEqual(shown(chunks));
      expect(recorder.isEnded).toBe(true);
    }
    expect(bench.cache.stats()).toMatchObject({ misses: 1, shared: 1, hits: 0, entries: 1 });
  });

  it("each has its own copy", () => {
    const bench = rig();
    const readings = [read(bench), read(bench), read(bench)];
    bench.last().head().chunks(timed(100)).end();
    const buffers = readings.map(({ recorder }) => recorder.chunks[0]?.audio.buffer);
    expect(new Set(buffers).size).toBe(3);
    readings[0]?.recorder.chunks[0]?.audio.fill(0);
    expect(shown(readings[1]?.recorder.chunks ?? [])).toEqual(shown([timed(100)]));
  });

  it("nothing that is kept holds on to the upstream's own memory", async () => {
    const held: SynthesisHandlers[] = [];
    const upstream: Upstream = {
      open(request, handlers) {
        held.push(handlers);
        return new Asked(request, handlers);
      },
    };
    const bench = rig({ upstream });
    const { recorder, synthesis } = read(bench);
    synthesis.pause();
    const chunk = timed(100);
    held[0]?.head({});
    held[0]?.chunk(chunk);
    held[0]?.end();
    synthesis.resume();
    await turns(1);
    expect(shown(recorder.chunks)).toEqual(shown([chunk]));
    expect(recorder.chunks[0]?.audio).not.toBe(chunk.audio);
  });

  it("the upstream's bill is reported once", () => {
    const bench = rig();
    const readings = [read(bench), read(bench)];
    bench.last().head({ requestId: "r7", characterCost: 17, currentConcurrentRequests: 1 });
    expect(readings.map(({ recorder }) => recorder.heads)).toEqual([
      [{ requestId: "r7", characterCost: 17, currentConcurrentRequests: 1 }],
      [{ requestId: "r7", characterCost: 0 }],
    ]);
  });

  it("who wants no timing shares what is timed, and not the other way round", () => {
    const bench = rig();
    read(bench, RAW_SPEECH);
    read(bench, SPEECH);
    const plain = read(bench, RAW_SPEECH);
    expect(bench.asked.map(({ request }) => request.wantsTiming)).toEqual([false, true]);
    bench.last().answer(timed(100), timed(0), timed(50));
    expect(shown(plain.recorder.chunks)).toEqual(shown([bare(100), bare(50)]));
  });

  it("a paused leader does not hold up others; only when all are paused the upstream is", async () => {
    const bench = rig();
    const leader = read(bench);
    leader.synthesis.pause();
    expect(bench.last().isPaused).toBe(true);
    const follower = read(bench);
    expect(bench.last().isPaused).toBe(false);
    bench.last().head().chunks(timed(100));
    expect([leader.recorder.bytes, follower.recorder.bytes]).toEqual([0, 100]);
    follower.synthesis.pause();
    expect(bench.last().isPaused).toBe(true);
    leader.synthesis.resume();
    expect(bench.last().isPaused).toBe(false);
    await turns(1);
    expect(leader.recorder.calls).toEqual(["head", "chunk"]);
    bench.last().chunks(timed(200)).end();
    follower.synthesis.resume();
    await turns(1);
    for (const { recorder } of [leader, follower])
      expect([recorder.bytes, recorder.isEnded]).toEqual([300, true]);
  });

  it("the leader's abort does not end it; when all are gone it is aborted, once", () => {
    const bench = rig();
    const [leader, one, two] = [read(bench), read(bench), read(bench)];
    bench.last().head().chunks(timed(100));
    leader.synthesis.abort();
    one.synthesis.abort();
    bench.last().chunks(timed(50));
    expect([leader.recorder.bytes, one.recorder.bytes, two.recorder.bytes]).toEqual([100, 100, 150]);
    expect(bench.last().aborts).toBe(0);
    two.synthesis.abort();
    expect(bench.last().aborts).toBe(1);
    expect(bench.cache.stats()).toMatchObject({ bytes: 0, entries: 0 });
    read(bench);
    expect(bench.asked).toHaveLength(2);
  });

  it("a paused one that leaves lets the others' upstream go on, and the other way round", () => {
    const bench = rig();
    const [leader, follower] = [read(bench), read(bench)];
    leader.synthesis.pause();
    follower.synthesis.abort();
    expect(bench.last().isPaused).toBe(true);
    const further = read(bench);
    leader.synthesis.abort();
    expect(bench.last().isPaused).toBe(false);
    bench.last().answer(timed(10));
    expect(further.recorder.isEnded).toBe(true);
  });

  it("an error reaches all, behind what had come before it", async () => {
    const bench = rig();
    const readings = [read(bench), read(bench), read(bench)];
    readings[2]?.synthesis.pause();
    bench.last().head().chunks(timed(100)).fail(BROKEN);
    expect(readings.map(({ recorder }) => recorder.failure)).toEqual([BROKEN, BROKEN, null]);
    readings[2]?.synthesis.resume();
    await turns(1);
    expect(readings[2]?.recorder.calls).toEqual(["head", "chunk", "error upstream_failed"]);
    expect(bench.cache.stats()).toMatchObject({ bytes: 0, entries: 0 });
  });

  it("an error before the answer reaches all, the paused too; the next asks again", () => {
    const bench = rig();
    const readings = [read(bench), read(bench)];
    readings[1]?.synthesis.pause();
    bench.last().fail(BROKEN);
    expect(readings.map(({ recorder }) => recorder.calls)).toEqual([
      ["error upstream_failed"],
      ["error upstream_failed"],
    ]);
    read(bench);
    expect(bench.asked).toHaveLength(2);
  });

  it("who is more urgent does not wait behind who is less, until it is answered", () => {
    const bench = rig();
    read(bench);
    const urgent = { ...SPEECH, priority: 5 };
    read(bench, urgent);
    expect(bench.asked).toHaveLength(2);
    read(bench, urgent);
    read(bench);
    expect(bench.asked).toHaveLength(2);
    bench.last().head();
    read(bench, { ...SPEECH, priority: 9 });
    expect(bench.asked).toHaveLength(2);
    bench.asked[0]?.answer(timed(10));
    const { bytes } = bench.cache.stats();
    bench.asked[1]?.chunks(timed(10)).end();
    expect(bench.cache.stats()).toMatchObject({ entries: 1, misses: 2, shared: 3 });
    // The later one is kept in place of the first.
    expect(bench.cache.stats().bytes).toBeLessThan(bytes);
  });

  it("who is overtaken so and fails does not end the sharing of the other", () => {
    const bench = rig();
    read(bench);
    read(bench, { ...SPEECH, priority: 5 });
    bench.asked[0]?.fail(BROKEN);
    read(bench);
    expect(bench.asked).toHaveLength(2);
  });

  it("a handler that throws fails its own reader only", () => {
    const bench = rig();
    const [leader, follower] = [read(bench), read(bench)];
    leader.recorder.onChunk = () => {
      throw new Error("A fault of the reader's own");
    };
    bench.last().answer(timed(10), timed(20));
    expect(leader.recorder.calls).toEqual(["head", "chunk", "error internal"]);
    expect([follower.recorder.bytes, follower.recorder.isEnded]).toEqual([30, true]);
  });
});

describe("PhraseCache: a request that does not answer", () => {
  it("who joins it learns that it was sent, so that it, too, can give it up", async () => {
    const bench = rig();
    read(bench);
    bench.last().sent();
    const follower = read(bench);
    expect(follower.recorder.calls).toEqual([]);
    await turns(1);
    expect(follower.recorder.calls).toEqual(["sent"]);
    bench.last().answer(timed(100));
    const late = read(bench);
    await turns(1);
    expect(late.recorder.calls).not.toContain("sent");
  });

  it("who gave it up is not joined to it again, and what it asks again is shared and kept", async () => {
    const bench = rig();
    const [impatient, patient] = [read(bench), read(bench)];
    const hung = bench.last().sent();
    bench.clock.advance(1000);
    impatient.synthesis.abort();
    const again = read(bench);
    expect(bench.asked).toHaveLength(2);
    expect(hung.aborts).toBe(0);
    patient.synthesis.abort();
    expect(hung.aborts).toBe(1);
    const patientAgain = read(bench);
    expect(bench.asked).toHaveLength(2);
    bench.last().sent().answer(timed(100));
    await turns(1);
    for (const { recorder } of [again, patientAgain]) expect(recorder.isEnded).toBe(true);
    read(bench);
    expect(bench.asked).toHaveLength(2);
  });
});

describe("PhraseCache: a reader that leaves before the first audio", () => {
  it.each([0, 20, 999])(
    "%i ms after the request left has not given it up: others join it",
    async (waitMs) => {
      const bench = rig();
      const [leader, interrupted] = [read(bench), read(bench)];
      bench.last().sent();
      bench.clock.advance(waitMs);
      interrupted.synthesis.abort();
      const next = read(bench);
      expect(bench.asked).toHaveLength(1);
      bench.last().answer(timed(100));
      await turns(1);
      for (const { recorder } of [leader, next]) expect(recorder.bytes).toBe(100);
      expect(bench.cache.stats()).toMatchObject({ misses: 1, shared: 2, entries: 1 });
    },
  );

  it("has not given up a request that was turned away, nor one that has just been sent again", () => {
    const bench = rig();
    const [, first, second] = [read(bench), read(bench), read(bench)];
    bench.last().sent().turnedAway();
    bench.clock.advance(5000);
    first.synthesis.abort();
    bench.last().sent();
    bench.clock.advance(20);
    second.synthesis.abort();
    read(bench);
    expect(bench.asked).toHaveLength(1);
  });
});

describe("PhraseCache: a shared phrase that grows too big", () => {
  const big = (count: number): SynthesisChunk[] =>
    Array.from({ length: count }, (_, index) => timed(40_000, { fill: index }));
  const MAX_PHRASE_BYTES = 100_000;
  const LARGER_PHRASE_BYTES = 300_000;

  it("who has got nothing yet asks for itself; who has begun hears it all", async () => {
    const bench = rig({ maxPhraseBytes: MAX_PHRASE_BYTES });
    const [leader, begun, waiting] = [read(bench), read(bench), read(bench)];
    waiting.synthesis.pause();
    bench
      .last()
      .sent()
      .head()
      .chunks(...big(5))
      .end();
    for (const { recorder } of [leader, begun]) {
      expect(shown(recorder.chunks)).toEqual(shown(big(5)));
      expect(recorder.isEnded).toBe(true);
    }
    expect(bench.asked).toHaveLength(2);
    expect(bench.last().isPaused).toBe(true);
    waiting.synthesis.resume();
    expect(bench.last().isPaused).toBe(false);
    bench
      .last()
      .sent()
      .answer(...big(5));
    expect(waiting.recorder.calls).toEqual(["sent", "sent", "head", "chunk", "end"]);
    expect(shown(waiting.recorder.chunks)).toEqual(shown(big(5)));
    expect(bench.cache.stats()).toMatchObject({ bytes: 0, entries: 0 });
  });

  it("who went alone and gives up ends its own request", () => {
    const bench = rig({ maxPhraseBytes: MAX_PHRASE_BYTES });
    const [, waiting] = [read(bench), read(bench)];
    waiting.synthesis.pause();
    bench
      .last()
      .head()
      .chunks(...big(3));
    waiting.synthesis.abort();
    expect(bench.asked.map(({ aborts }) => aborts)).toEqual([0, 1]);
  });

  it("nobody joins it any more", () => {
    const bench = rig({ maxPhraseBytes: MAX_PHRASE_BYTES });
    read(bench);
    bench
      .last()
      .head()
      .chunks(...big(3));
    read(bench);
    expect(bench.asked).toHaveLength(2);
  });

  it("what a slow one has still to read is bounded: the upstream waits for it, and goes on when it does", async () => {
    const bench = rig({ maxPhraseBytes: LARGER_PHRASE_BYTES });
    const [leader, slow] = [read(bench), read(bench)];
    bench
      .last()
      .head()
      .chunks(...big(4));
    slow.synthesis.pause();
    const chunks = big(20);
    let sent = 4;
    while (!bench.last().isPaused && sent < chunks.length) {
      bench.last().chunks(...chunks.slice(sent, sent + 1));
      sent += 1;
      expect(bench.cache.stats().bytes).toBeLessThan(LARGER_PHRASE_BYTES + 45_000);
    }
    // The first four were read by both, and seven are what a phrase may have.
    expect(sent).toBe(11);
    expect(shown(leader.recorder.chunks)).toEqual(shown(chunks.slice(0, sent)));
    slow.synthesis.resume();
    await turns(1);
    expect(bench.last().isPaused).toBe(false);
    expect(bench.clock.pending).toBe(0);
    bench
      .last()
      .chunks(...chunks.slice(sent))
      .end();
    for (const { recorder } of [leader, slow]) {
      expect(shown(recorder.chunks)).toEqual(shown(chunks));
      expect(recorder.isEnded).toBe(true);
    }
    expect(bench.cache.stats().bytes).toBe(0);
  });

  it("who holds up others for ten seconds is failed, and they go on", () => {
    const bench = rig({ maxPhraseBytes: MAX_PHRASE_BYTES });
    const [leader, slow] = [read(bench), read(bench)];
    bench
      .last()
      .head()
      .chunks(...big(1));
    slow.synthesis.pause();
    bench.last().chunks(...big(4));
    expect(bench.last().isPaused).toBe(true);
    bench.clock.advance(9_999);
    expect(slow.recorder.failure).toBeNull();
    bench.clock.advance(1);
    expect(slow.recorder.failure?.code).toBe("upstream_truncated");
    expect(bench.last().isPaused).toBe(false);
    bench
      .last()
      .chunks(...big(2))
      .end();
    expect([leader.recorder.bytes, leader.recorder.isEnded]).toEqual([7 * 40_000, true]);
    expect(slow.recorder.bytes).toBe(40_000);
    expect(bench.cache.stats().bytes).toBe(0);
    expect(bench.clock.pending).toBe(0);
  });

  it("who is paused and less far behind is not failed for it", async () => {
    const bench = rig({ maxPhraseBytes: MAX_PHRASE_BYTES });
    const [leader, slow, slower] = [read(bench), read(bench), read(bench)];
    bench
      .last()
      .head()
      .chunks(...big(1));
    slower.synthesis.pause();
    bench.last().chunks(...big(1));
    slow.synthesis.pause();
    bench.last().chunks(...big(2));
    bench.clock.advance(10_000);
    expect([slow, slower].map(({ recorder }) => recorder.failure !== null)).toEqual([false, true]);
    slow.synthesis.resume();
    await turns(1);
    bench.last().end();
    expect([leader, slow].map(({ recorder }) => recorder.bytes)).toEqual([160_000, 160_000]);
  });

  it("nobody is failed while nobody waits for it, however long all are paused", () => {
    const bench = rig({ maxPhraseBytes: MAX_PHRASE_BYTES });
    const [leader, slow] = [read(bench), read(bench)];
    bench
      .last()
      .head()
      .chunks(...big(1));
    slow.synthesis.pause();
    bench.last().chunks(...big(4));
    leader.synthesis.pause();
    bench.clock.advance(60_000);
    expect(slow.recorder.failure).toBeNull();
    expect(bench.last().isPaused).toBe(true);
  });
});

/** One thing that happens; `who` picks among those that there are. */
type Step =
  | { readonly what: "open"; readonly isTimed: boolean; readonly isPaused: boolean }
  | { readonly what: "pause" | "resume" | "abort" | "upstream" | "parsed"; readonly who: number }
  | { readonly what: "turn" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ what: fc.constant("open" as const), isTimed: fc.boolean(), isPaused: fc.boolean() }),
  fc.record({
    what: fc.constantFrom("pause" as const, "resume" as const, "abort" as const),
    who: fc.nat(20),
  }),
  { weight: 3, arbitrary: fc.record({ what: fc.constant("upstream" as const), who: fc.nat(20) }) },
  // What the upstream's client had parsed when it was paused.
  fc.record({ what: fc.constant("parsed" as const), who: fc.nat(20) }),
  fc.record({ what: fc.constant("turn" as const) }),
);

/** A reader that checks while it reads: nothing comes while it is paused or after it gave up. */
class StrictReader extends Recorder {
  readonly isTimed: boolean;
  isPaused = false;
  isAborted = false;
  readonly wrong: string[] = [];
  synthesis: Synthesis | null = null;

  constructor(isTimed: boolean) {
    super();
    this.isTimed = isTimed;
    this.onChunk = () => this.#check("chunk");
  }
  override head(head: Parameters<Recorder["head"]>[0]): void {
    this.#check("head");
    super.head(head);
  }
  override end(): void {
    if (this.isAborted) this.wrong.push("end after abort");
    super.end();
  }
  #check(what: string): void {
    if (this.synthesis === null) this.wrong.push(`${what} inside open`);
    if (this.isPaused) this.wrong.push(`${what} while paused`);
    if (this.isAborted || this.isOver) this.wrong.push(`${what} after the end`);
  }
}

/** Plays one script to every request of the upstream, one event at a time. */
class Player {
  readonly #events: readonly ((asked: Asked) => void)[];
  readonly #played = new Map<Asked, number>();

  constructor(chunks: readonly SynthesisChunk[], error: GatewayError | null) {
    this.#events = [
      (asked) => asked.head(),
      ...chunks.map((chunk) => (asked: Asked) => asked.chunks(chunk)),
      (asked) => (error === null ? asked.end() : asked.fail(error)),
    ];
  }
  isOver(asked: Asked): boolean {
    return asked.aborts > 0 || this.#next(asked) === this.#events.length;
  }
  /** The next event, unless it is paused. */
  play(asked: Asked): void {
    if (!asked.isPaused) this.playParsed(asked);
  }
  playParsed(asked: Asked): void {
    if (this.isOver(asked)) return;
    const next = this.#next(asked);
    this.#played.set(asked, next + 1);
    this.#events[next]?.(asked);
  }
  #next(asked: Asked): number {
    return this.#played.get(asked) ?? 0;
  }
}

interface Scene {
  readonly bench: CacheRig;
  readonly readers: StrictReader[];
  readonly player: Player;
  /** Requests of readers that went alone: they were made while the upstream spoke. */
  readonly alone: Set<Asked>;
}

function act({ bench, readers, player, alone }: Scene, doing: Step): void {
  if (doing.what === "turn") return;
  const before = bench.asked.length;
  if (doing.what === "open") {
    const reader = new StrictReader(doing.isTimed);
    readers.push(reader);
    reader.synthesis = bench.cache.open(doing.isTimed ? SPEECH : RAW_SPEECH, reader);
    reader.isPaused = doing.isPaused;
    if (doing.isPaused) reader.synthesis.pause();
    return;
  }
  if (doing.what === "upstream" || doing.what === "parsed") {
    const asked = bench.asked[doing.who % Math.max(1, bench.asked.length)];
    if (asked === undefined) return;
    // Who went alone gets what was parsed even while paused, as by the upstream's own client.
    if (doing.what === "upstream" || alone.has(asked)) player.play(asked);
    else player.playParsed(asked);
    for (const further of bench.asked.slice(before)) alone.add(further);
    return;
  }
  const reader = readers[doing.who % Math.max(1, readers.length)];
  if (reader === undefined) return;
  if (doing.what === "abort") reader.isAborted = true;
  else reader.isPaused = doing.what === "pause";
  reader.synthesis?.[doing.what]();
}

async function finish({ bench, readers, player }: Scene): Promise<void> {
  for (const reader of readers) {
    reader.isPaused = false;
    reader.synthesis?.resume();
  }
  // Each round every request gets on by one event, so this many are enough for all.
  for (let round = 0; round < 24; round += 1) {
    await turns(1);
    for (const asked of bench.asked) player.play(asked);
  }
  await turns(1);
}

describe("PhraseCache, whatever happens in whichever order", () => {
  const chunksOf = (sizes: readonly number[]): SynthesisChunk[] =>
    sizes.map((size, index) => timed(size, { fill: index + 1, startSeconds: index }));
  const scene = fc.record({
    sizes: fc.array(fc.constantFrom(0, 10, 30_000), { maxLength: 8, size: "max" }),
    isBroken: fc.boolean(),
    maxPhraseBytes: fc.constantFrom(20_000, 70_000, 500_000),
    steps: fc.array(step, { maxLength: 60, size: "max" }),
  });

  it("each reader gets exactly what the upstream said, and what is opened is closed", async () => {
    await fc.assert(
      fc.asyncProperty(scene, async ({ sizes, isBroken, maxPhraseBytes, steps }) => {
        const bench = rig({ maxPhraseBytes });
        const chunks = chunksOf(sizes);
        const player = new Player(chunks, isBroken ? BROKEN : null);
        const readers: StrictReader[] = [];
        const playing: Scene = { bench, readers, player, alone: new Set() };
        for (const doing of steps) {
          act(playing, doing);
          if (doing.what === "turn") await Promise.resolve();
        }
        await finish(playing);
        const wholeAudio = Buffer.concat(chunks.map(({ audio }) => audio));
        for (const reader of readers) {
          expect(reader.wrong).toEqual([]);
          const expected = reader.isTimed ? chunks : null;
          if (reader.isAborted) {
            if (expected !== null)
              expect(shown(reader.chunks)).toEqual(shown(expected.slice(0, reader.chunks.length)));
            continue;
          }
          expect([reader.isEnded, reader.failure]).toEqual(isBroken ? [false, BROKEN] : [true, null]);
          expect(reader.heads).toHaveLength(1);
          if (expected !== null) expect(shown(reader.chunks)).toEqual(shown(expected));
          // Bare audio that it had asked for itself comes as the script has it, and else as records' audio.
          else expect(reader.audio.equals(wholeAudio)).toBe(true);
        }
        expect(bench.asked.filter((asked) => !player.isOver(asked))).toEqual([]);
        expect(bench.asked.every(({ aborts }) => aborts <= 1)).toBe(true);
        bench.cache.close();
        expect(bench.cache.stats().bytes).toBe(0);
        expect(bench.clock.pending).toBe(0);
      }),
      { numRuns: 150 },
    );
  });
});
