import { describe, expect, it } from "vitest";
import { type MappedSpan, SpokenMap } from "../../../../src/text/prepare/spoken-map.ts";

/** "**Hi** you 😀co" spoken as "Hi you, company": marks removed, a comma inserted, "😀" removed, "co" replaced. */
function example(): SpokenMap {
  const map = new SpokenMap();
  map.addChange(0, 2);
  map.addSame(2);
  map.addChange(0, 1);
  map.addChange(0, 1);
  map.addSame(4);
  map.addChange(1, 0);
  map.addSame(1);
  map.addChange(0, 2);
  map.addChange(7, 2);
  map.addChange(0, 3);
  return map;
}

function shown(spans: readonly MappedSpan[]): string[] {
  return spans.map(
    (p) => `${p.spokenStart}-${p.spokenEnd}${p.isSame ? "=" : "~"}${p.clientStart}-${p.clientEnd}`,
  );
}

describe("SpokenMap", () => {
  it.each([
    [
      0,
      15,
      true,
      [
        "0-0~0-2",
        "0-2=2-4",
        "2-2~4-6",
        "2-6=6-10",
        "6-7~10-10",
        "7-8=10-11",
        "8-8~11-13",
        "8-15~13-15",
        "15-15~15-18",
      ],
    ],
    [0, 2, false, ["0-0~0-2", "0-2=2-4"]],
    [1, 2, false, ["1-2=3-4"]],
    [2, 6, false, ["2-2~4-6", "2-6=6-10"]],
    [3, 5, false, ["3-5=7-9"]],
    [5, 8, false, ["5-6=9-10", "6-7~10-10", "7-8=10-11"]],
    [8, 15, false, ["8-8~11-13", "8-15~13-15"]],
    [9, 12, false, ["9-12~13-15"]],
    [9, 99, true, ["9-15~13-15", "15-15~15-18"]],
    [15, 15, true, ["15-15~15-18"]],
    [8, 8, false, []],
    [2, 2, true, []],
  ] as const)("gives the spans of %i to %i (last: %s)", (start, end, isLast, expected) => {
    expect(shown(example().spans(start, end, isLast))).toEqual(expected);
  });

  it("spans of neighbouring ranges make the whole", () => {
    const map = example();
    for (let cut = 0; cut <= map.spokenLength; cut++) {
      const parts = [...map.spans(0, cut), ...map.spans(cut, map.spokenLength, true)];
      expect(parts.filter((span) => span.spokenStart === span.spokenEnd).length).toBe(4);
      expect(parts.map((span) => span.spokenStart)).toEqual(
        parts.map((_, i) => parts[i - 1]?.spokenEnd ?? 0),
      );
    }
  });

  it("finds the client's offset of a spoken one", () => {
    const map = example();
    const offsets = Array.from({ length: 16 }, (_, spoken) => map.toClient(spoken));
    expect(offsets).toEqual([2, 3, 6, 7, 8, 9, 10, 10, 13, 13, 13, 13, 13, 13, 13, 18]);
    expect([map.toClient(-1), map.toClient(99), new SpokenMap().toClient(0)]).toEqual([2, 18, 0]);
  });

  it.each([
    [0, 2, 2, 4],
    [2, 8, 6, 11],
    [6, 7, 10, 10],
    [10, 11, 13, 15],
    [8, 15, 13, 15],
    [4, 4, 8, 8],
  ])("finds the client's range of %i to %i", (start, end, clientStart, clientEnd) => {
    expect(example().clientRange(start, end)).toEqual({ start: clientStart, end: clientEnd });
  });
});
