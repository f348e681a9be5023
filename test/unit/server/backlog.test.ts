import { expect, it } from "vitest";
import { Backlog } from "../../../src/server/sockets/backlog.ts";

const LETTERS = new TextEncoder();

it("gives back what it was given, in order, of any length and kind", () => {
  const backlog = new Backlog();
  const lengths = [
    0,
    1,
    65_532,
    65_533,
    3,
    200_000,
    0,
    65_536,
    ...Array.from({ length: 5000 }, (_, i) => i % 97),
  ];
  const sent = lengths.map((length, i) => ({ bytes: Buffer.alloc(length, i), isBinary: i % 3 === 0 }));
  for (const { bytes, isBinary } of sent) backlog.push(bytes, isBinary);
  expect(backlog.bytes).toBe(lengths.reduce((sum, length) => sum + length + 4, 0));
  for (const { bytes, isBinary } of sent) {
    const got = backlog.shift();
    expect(got?.isBinary).toBe(isBinary);
    expect(Buffer.compare(got?.bytes ?? Buffer.alloc(1), bytes)).toBe(0);
  }
  expect(backlog.shift()).toBeNull();
  expect(backlog.bytes).toBe(0);
});

it("copies: the memory of a message is lent", () => {
  const backlog = new Backlog();
  const lent = LETTERS.encode("first");
  backlog.push(lent.buffer, false);
  lent.fill(0);
  expect(new TextDecoder().decode(backlog.shift()?.bytes)).toBe("first");
});

it("takes more while it is emptied", () => {
  const backlog = new Backlog();
  let next = 0;
  for (let round = 0; round < 50; round += 1) {
    for (let i = 0; i < 40; i += 1) backlog.push(LETTERS.encode(String(round * 40 + i).repeat(300)), false);
    for (let i = 0; i < (round < 49 ? 30 : 530); i += 1) {
      expect(new TextDecoder().decode(backlog.shift()?.bytes)).toBe(String(next).repeat(300));
      next += 1;
    }
  }
  expect(backlog.shift()).toBeNull();
});
