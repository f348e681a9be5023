/** Any mix of commands: the session comes to rest, and what was not cut is heard whole, once, in order. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import type { MemoryListener } from "../../../helpers/memory-listener.ts";
import { SlowEncoder } from "../../../helpers/slow-encoder.ts";
import { heardOf, read, type SpellingFormat, stage } from "../spelling.ts";

const REFUSALS = new Set([
  "nothing_to_interrupt",
  "nothing_to_resume",
  "nothing_to_cancel",
  "resume_expired",
  "unknown_utterance",
  "queue_full",
]);
const ROOMY = { maxQueuedUtterances: 40 };

const id = fc.integer({ min: 0, max: 5 });
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("speak"), words: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("interrupt"), of: fc.option(id) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("keep"),
      of: fc.option(id),
      ms: fc.integer({ min: 1, max: 400 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stall"), ms: fc.integer({ min: 20, max: 900 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("ack"), ms: fc.integer({ min: 0, max: 400 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("resume") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel"), of: fc.option(id) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("wait"), ms: fc.integer({ min: 0, max: 700 }) }) },
);
/** The one that has not begun was emitted as cut before the one that has, with all that stands before it. */
const CUT_OF_QUEUED: Step[] = [
  { do: "speak", words: 4 },
  { do: "wait", ms: 601 },
  { do: "speak", words: 1 },
  { do: "stall", ms: 82 },
  { do: "speak", words: 1 },
  { do: "keep", of: null, ms: 67 },
];
const steps = fc.array(step, { maxLength: 30 }) as fc.Arbitrary<Step[]>;

type Step = { do: string; words?: number; of?: number | null; ms?: number };

// Hundreds of sessions: a busy machine takes its time.
describe("any mix of commands", { timeout: 90_000 }, () => {
  it("leaves the session at rest, and what was never cut is heard whole", async () => {
    await fc.assert(
      fc.asyncProperty(
        steps,
        fc.constantFrom(0, 200, 1500),
        fc.integer({ min: 1, max: 40 }),
        fc.option(fc.tuple(fc.constantFrom(20, 60), fc.constantFrom(0, 100, 300))),
        async (commands, leadMs, chunk, second) => {
          const rig = stage(`format=ulaw_8000&lead_ms=${leadMs}&events=words,characters`, ROOMY);
          const listeners = [{ listener: rig.listener, frameMs: 20 }];
          if (second !== null) {
            const [frameMs, otherLeadMs] = second;
            const { listener } = rig.join(
              `role=listener&format=ulaw_8000&frame_ms=${frameMs}&lead_ms=${otherLeadMs}`,
            );
            listeners.push({ listener, frameMs });
          }
          const texts = await play(rig, { commands, chunk });
          // Who acknowledges what it can't have played yet speaks for the others, too.
          const isStrict = !commands.some((one) => one.do === "ack");
          for (const { listener, frameMs } of listeners) check(listener, { frameMs, texts, isStrict });
        },
      ),
      { numRuns: 500 },
    );
  });

  it("does so too where frames come back late from an encoder", async () => {
    await fc.assert(
      fc.asyncProperty(
        steps,
        fc.tuple(fc.constantFrom(0, 60, 200), fc.constantFrom(0, 60, 200), fc.constantFrom(20, 60)),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 6 }),
        async (commands, [leadMs, opusLeadMs, frameMs], chunk, turns) => {
          const encoder = new SlowEncoder(turns);
          const rig = stage(`format=alaw_8000&lead_ms=${leadMs}&events=words`, ROOMY, encoder.pool);
          const opus = rig.join(`role=listener&format=opus_48000&frame_ms=${frameMs}&lead_ms=${opusLeadMs}`);
          const texts = await play(rig, { commands, chunk, onTurn: () => encoder.turn() });
          for (const { listener } of [rig, opus]) {
            const ended = new Set(listener.eventsOf("utterance.done").map((end) => end.utterance_id));
            expect(ended.size).toBe(texts.length);
          }
          const isStrict = !commands.some((one) => one.do === "ack");
          check(opus.listener, { frameMs, texts, isStrict, format: "pcm_24000" });
        },
      ),
      { numRuns: 300, examples: [[CUT_OF_QUEUED, [0, 0, 20], 5, 4]] },
    );
  });
});

/** Sends the commands while time passes and the upstream answers `chunk` characters each 20 ms; the texts that were said. */
async function play(
  rig: ReturnType<typeof stage>,
  of: { readonly commands: readonly Step[]; readonly chunk: number; readonly onTurn?: () => void },
): Promise<readonly string[]> {
  const sent = new Map<number, number>();
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 20) {
      for (let index = 0; index < rig.requests.length; index += 1) {
        const open = rig.requests[index];
        const from = sent.get(index) ?? 0;
        const length = rig.asked()[index]?.length ?? 0;
        if (open === undefined || open.isAborted || open.isPaused || from >= length) continue;
        rig.answer(index, { from, chars: Math.min(of.chunk, length - from) });
        sent.set(index, from + of.chunk);
      }
      rig.clock.advance(Math.min(20, ms - passed));
      of.onTurn?.();
      // What came back is sent behind all that comes in this turn.
      await Promise.resolve();
    }
  };
  const texts: string[] = [];
  const attempt = (message: object): void => {
    try {
      rig.send(message);
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !REFUSALS.has(thrown.code)) throw thrown;
    }
  };
  const { session } = rig;
  for (const one of of.commands) {
    const target = one.of == null ? {} : { utterance_id: `u${one.of}` };
    const ms = one.ms ?? 0;
    if (one.do === "wait") await pass(ms);
    else if (one.do === "stall") rig.clock.stall(ms);
    else if (one.do === "ack") {
      attempt({ type: "played", at_ms: Math.max(0, session.sentMsOf(rig.participant) - ms) });
    } else if (one.do === "keep") attempt({ type: "interrupt", keep_ms: ms, ...target });
    else if (one.do === "speak") {
      // Each utterance of one letter, of its own.
      const letter = String.fromCharCode(97 + (texts.length % 26));
      const text = Array.from({ length: one.words ?? 1 }, () => letter.repeat(3)).join(" ");
      rig.speak(text, `u${texts.length}`);
      texts.push(text);
    } else attempt({ type: one.do, ...target });
  }
  for (let round = 0; round < 200 && !session.isIdle; round += 1) await pass(500);
  await pass(500);
  expect(session.isIdle).toBe(true);
  return texts;
}

/** What one listener was emitted and heard of the texts. */
function check(
  listener: MemoryListener,
  of: {
    readonly frameMs: number;
    readonly texts: readonly string[];
    readonly isStrict: boolean;
    readonly format?: SpellingFormat;
  },
): void {
  const { frameMs, texts, isStrict, format = "ulaw_8000" } = of;
  const heard = heardOf(listener, format, frameMs).map(({ audio }) => read(audio, format));
  const all = heard.join("");
  for (const [index, text] of texts.entries()) {
    const outcomes = listener
      .eventsOf("utterance.done")
      .filter((end) => end.utterance_id === `u${index}`)
      .map(({ outcome }) => outcome);
    const letters = text.replaceAll(" ", "");
    const letter = letters[0] ?? "";
    const count = all.split(letter).length - 1;
    // It ends once for each time that it went on.
    const resumed = listener.eventsOf("utterance.resumed").filter((e) => e.utterance_id === `u${index}`);
    expect(outcomes.length).toBeGreaterThan(0);
    if (outcomes.length === 1 && outcomes[0] === "done") {
      // Heard whole; said again only where one before it was cut.
      expect(heard.some((stretch) => stretch.includes(letters))).toBe(true);
    }
    if (isStrict && outcomes.at(-1) === "done") {
      expect(count).toBeGreaterThanOrEqual(letters.length);
      expect(count).toBeLessThanOrEqual(letters.length + 3 * resumed.length);
    }
    if (outcomes.length === 1 && outcomes[0] === "cancelled") expect(count).toBe(0);
  }
}
