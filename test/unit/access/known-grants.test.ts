/** Grants of tokens that are read once. */
import { describe, expect, it } from "vitest";
import { KnownGrants } from "../../../src/access/known-grants.ts";

const refuse = (path: readonly PropertyKey[]) => new RangeError(`wrong: ${path.join(".")}`);
const grants = (more: object = {}) => ({ sessions: ["call-*"], allow: ["listen"], ...more });

describe("grants of tokens", () => {
  it("that are alike are one object, others are others", () => {
    const known = new KnownGrants();
    const first = known.read(grants(), refuse);
    expect(first).toEqual(grants());
    expect(known.read(grants(), refuse)).toBe(first);
    expect(known.read(grants({ characters: 0 }), refuse)).toMatchObject({ characters: 0 });
    expect(known.read(grants({ allow: ["speak"] }), refuse).allow).toEqual(["speak"]);
  });

  it("are forgotten where there are too many", () => {
    const known = new KnownGrants();
    const first = known.read(grants(), refuse);
    for (let seconds = 1; seconds <= 1000; seconds += 1) known.read(grants({ seconds }), refuse);
    expect(known.read(grants(), refuse)).not.toBe(first);
    expect(known.read(grants(), refuse)).toEqual(first);
  });

  it("that are wrong are refused each time, with the field", () => {
    const known = new KnownGrants();
    for (const wrong of [{ fly: true }, { characters: -1 }, { characters: 0.5 }, { characters: 2e9 }]) {
      const [field = ""] = Object.keys(wrong);
      for (let time = 0; time < 2; time += 1)
        expect(() => known.read(grants(wrong), refuse)).toThrow(`wrong: ${field}`);
    }
    for (const none of [undefined, null, "listen", []])
      expect(() => known.read(none, refuse)).toThrow("wrong: ");
  });
});
