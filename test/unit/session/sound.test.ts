/** What `play` and `prepare` bring. */
import { describe, expect, it } from "vitest";
import { SOUND_FORMATS } from "../../../src/protocol/vocabulary.ts";
import { soundOf } from "../../../src/session/sound.ts";
import { Source } from "../../../src/session/source.ts";

const BYTES = Uint8Array.from({ length: 320 }, (_, at) => at % 100);

describe("a sound", () => {
  it.each(SOUND_FORMATS)("in %s is taken, and can be played", (format) => {
    const sound = soundOf({ audio: Buffer.from(BYTES).toString("base64"), format });
    expect(sound).toEqual({ format, audio: BYTES });
    const source = new Source(sound.format);
    source.push(sound.audio);
    expect(source.hasAudio).toBe(true);
  });
});
