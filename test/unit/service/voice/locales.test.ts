/** What Intl makes for a language is kept from request to request. */
import { beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import { VOICES } from "../../../../src/service/voice/engine/voices.ts";
import { Scheduler } from "../../../../src/service/voice/scheduler.ts";
import { JOB_DEFAULTS } from "../../../helpers/voice-job.ts";

/** A date of either order, an amount, a unit and an "and": all that Intl is asked for. */
const TEXT = "Am 1.5.2024 und 5/6/2024 & um 8:30: 12,50 € für 3 kg.";
const KINDS = ["NumberFormat", "DateTimeFormat", "ListFormat", "PluralRules"] as const;

let engine: Engine;
beforeAll(async () => {
  engine = await Engine.load();
});

/** How many objects of Intl are made meanwhile. */
async function countMade(action: () => Promise<void>): Promise<number> {
  const own = KINDS.map((kind) => [kind, Reflect.get(Intl, kind)] as const);
  let made = 0;
  for (const [kind, original] of own) {
    const counting = new Proxy(original, {
      construct: (target, given, newTarget) => {
        made += 1;
        return Reflect.construct(target, given, newTarget);
      },
      apply: (target, self, given) => {
        made += 1;
        return Reflect.apply(target, self, given);
      },
    });
    Reflect.set(Intl, kind, counting);
  }
  try {
    await action();
  } finally {
    for (const [kind, original] of own) Reflect.set(Intl, kind, original);
  }
  return made;
}

/** The requests of one thread; each resolves when it was spoken. */
function startThread() {
  const ended = new Map<number, () => void>();
  const scheduler = new Scheduler({
    engine,
    reply: (job, message) => {
      if (message.type === "chunk") scheduler.acknowledge(job, message.chunk.audio.length);
      else if (message.type === "ended" && message.outcome === "done") ended.get(job)?.();
    },
  });
  let jobs = 0;
  return (languageCode: string) =>
    new Promise<void>((resolve) => {
      jobs += 1;
      ended.set(jobs, resolve);
      const inputs = [{ text: TEXT, voiceId: VOICES[0]?.id ?? "", languageCode }];
      const cancelled = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
      scheduler.open(jobs, { ...JOB_DEFAULTS, normalization: "on", inputs }, cancelled);
    });
}

describe("the words of a language", () => {
  it("are made by the first request of a thread; repeated ones make none", async () => {
    const speak = startThread();
    expect(await countMade(() => speak("de"))).toBeGreaterThan(3);
    for (let repeated = 0; repeated < 3; repeated += 1) expect(await countMade(() => speak("de"))).toBe(0);
    expect(await countMade(() => speak("fr"))).toBeGreaterThan(3);
    expect(await countMade(() => speak("de"))).toBe(0);
  });

  it("are kept of the eight languages that were spoken last", async () => {
    const speak = startThread();
    const codes = ["de", "fr", "es", "it", "pt", "pl", "nl", "sv"];
    for (const code of codes) await speak(code);
    for (const code of codes) expect(await countMade(() => speak(code)), code).toBe(0);
    await speak("da");
    expect(await countMade(() => speak("de"))).toBeGreaterThan(3);
    expect(await countMade(() => speak("da"))).toBe(0);
  });
});
