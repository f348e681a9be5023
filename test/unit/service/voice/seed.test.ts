/** The engine's own randomness: what a seed gives is the same bytes, whatever was spoken before. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";

const VOICE = { name: "en-us+f3", rate: 175, pitch: 50, range: 50 };
const TEXT = "The lamp is on the table. Nobody has put it there, thought the six sisters.";

function hashOf(engine: Engine, text = TEXT, voice = VOICE): string {
  const hash = createHash("sha256");
  engine.speak(text, voice, (samples) => {
    hash.update(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
    return false;
  });
  return hash.digest("hex");
}

describe("a reset engine", () => {
  it("speaks the same samples, whatever was spoken or broken off before", async () => {
    const engine = await Engine.load();
    engine.reset();
    const first = hashOf(engine);
    expect(hashOf(engine)).not.toBe(first);
    hashOf(engine, "Bonjour tout le monde.", { ...VOICE, name: "fr+m3" });
    hashOf(engine, `${"こんにちは、".repeat(400)}`, { ...VOICE, name: "ja+f2" });
    engine.speak(TEXT, VOICE, () => true);
    for (let run = 0; run < 3; run += 1) {
      engine.reset();
      expect(hashOf(engine)).toBe(first);
    }
  });

  it("speaks as long as one that was never reset", async () => {
    const engine = await Engine.load();
    const samplesOf = () => {
      let count = 0;
      engine.speak(TEXT, VOICE, (samples) => {
        count += samples.length;
        return false;
      });
      return count;
    };
    const plain = samplesOf();
    engine.reset();
    expect(Math.abs(samplesOf() / plain - 1)).toBeLessThan(0.01);
  });

  it("speaks the same samples in an engine that was loaded a second later", { timeout: 15_000 }, async () => {
    const first = await Engine.load();
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const second = await Engine.load();
    for (const engine of [first, second]) engine.reset();
    expect(hashOf(second)).toBe(hashOf(first));
  });
});
