import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parseRecording, playRecording } from "../../../src/cli/say/recording.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

const LINE = (atMs: number, text: string) => JSON.stringify({ at_ms: atMs, text });

describe("parseRecording()", () => {
  test("takes a header, blank lines and tokens", () => {
    const content = `${JSON.stringify({ about: "x", language: "zh" })}\n\n${LINE(0, "你")}\n${LINE(20.5, "好")}\n`;
    expect(parseRecording(content, "f")).toEqual({
      language: "zh",
      tokens: [
        { atMs: 0, text: "你" },
        { atMs: 20.5, text: "好" },
      ],
    });
    expect(parseRecording(LINE(0, "a"), "f").language).toBeUndefined();
  });

  test.each([
    ["", "no tokens"],
    ['{"about": "x"}', "no tokens"],
    ["no", "line 1: no JSON object"],
    ["[1]", "line 1: no JSON object"],
    [`${LINE(0, "a")}\n{"at_ms": 1}`, "line 2: text is no string"],
    [`${LINE(0, "a")}\n\n{"text": "secret"}`, "line 3: at_ms is no time"],
    ['{"at_ms": -1, "text": "secret"}', "line 1: at_ms is no time"],
    [`${LINE(5, "a")}\n${LINE(4, "secret")}`, "line 2: at_ms is before that of the token before"],
    ['{"at_ms": 0, "text": "secret\\ud83d"}', "line 1: text has half of a surrogate pair"],
  ])("names the line of %j, and never its text", (content, message) => {
    expect(() => parseRecording(content, "f")).toThrow(`Recording "f": ${message}`);
    expect(() => parseRecording(content, "f")).not.toThrow("secret");
  });
});

test("playRecording() hands out each token at its time, and at once what is late", async () => {
  const clock = new FakeClock();
  const tokens = playRecording(
    parseRecording([0, 10, 20].map((at) => LINE(at, `${at}`)).join("\n"), "f"),
    clock,
  );
  expect((await tokens.next()).value).toBe("0");
  let second: string | undefined;
  const next = tokens.next().then(({ value }) => {
    second = value as string;
  });
  clock.advance(9);
  await Promise.resolve();
  expect(second).toBeUndefined();
  clock.advance(21);
  await next;
  expect(second).toBe("10");
  expect((await tokens.next()).value).toBe("20");
  expect((await tokens.next()).done).toBe(true);
  expect(clock.pending).toBe(0);
});

const STREAMS = fileURLToPath(new URL("../../../examples/streams/", import.meta.url));
const NAMES = readdirSync(STREAMS).filter((name) => name.endsWith(".ndjson"));
const SCRIPTS: Readonly<Record<string, RegExp>> = {
  ar: /\p{Script=Arabic}/u,
  en: /\p{Script=Latin}/u,
  hi: /\p{Script=Devanagari}/u,
  ja: /\p{Script=Hiragana}/u,
  th: /\p{Script=Thai}/u,
  zh: /\p{Script=Han}/u,
};

describe("examples/streams", () => {
  const recordings = NAMES.map((name) => ({
    name,
    ...parseRecording(readFileSync(`${STREAMS}${name}`, "utf8"), name),
  }));

  test("holds every script", () => {
    const languages = new Set(recordings.map(({ language }) => language));
    expect([...languages].sort()).toEqual(Object.keys(SCRIPTS));
  });

  test.each(recordings)("$name is paced as a model writes, in its language", ({ language, tokens }) => {
    expect(tokens.length).toBeGreaterThanOrEqual(60);
    expect(tokens.length).toBeLessThanOrEqual(200);
    const text = tokens.map((token) => token.text).join("");
    expect(text.normalize("NFC")).toBe(text);
    expect(text).toMatch(SCRIPTS[language ?? ""] ?? /^$/);
    expect(tokens[0]?.atMs).toBe(0);
    const waitsMs = tokens.slice(1).map(({ atMs }, index) => atMs - (tokens[index]?.atMs ?? 0));
    const sorted = [...waitsMs].sort((a, b) => a - b);
    const median = sorted[sorted.length >> 1] ?? 0;
    expect(median).toBeGreaterThan(15);
    expect(median).toBeLessThan(60);
    expect(sorted.at(-1)).toBeGreaterThanOrEqual(300);
    expect(sorted.at(-1)).toBeLessThanOrEqual(900);
    // Some come together, as a server's buffer lets them go.
    expect(sorted[3]).toBeLessThan(3);
  });

  test.each(["ar", "hi", "th"])("%s has tokens that end within a grapheme", (language) => {
    const tokens = recordings.find((recording) => recording.language === language)?.tokens ?? [];
    expect(tokens.some(({ text }) => /^\p{Mark}/u.test(text))).toBe(true);
  });
});
