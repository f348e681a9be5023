/** The tables of services in docs/upstreams.md say what the adapters do. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Capabilities, Setting } from "../../../src/upstream/services/adapter.ts";
import { SERVICES, type Service } from "../../../src/upstream/services/services.ts";

const PAGE = readFileSync(new URL("../../../docs/upstreams.md", import.meta.url), "utf8");
/** The cells behind the name, of each row that begins with the service's name. */
const ROWS = [...section("## What there is", "Notes:").matchAll(/^\| `(\w+)`[^|]*\|(.*)\|$/gm)]
  .map(([, name = "", cells = ""]) => ({
    name,
    cells: cells.split("|").map((cell) => cell.trim()),
  }))
  .filter(({ name }) => name !== "service");
const NUMBERS = new Map([
  [5, "five"],
  [6, "six"],
  [7, "seven"],
]);
const SETTINGS: Partial<Readonly<Record<Setting, string>>> = {
  "voice_settings.speed": "`speed`",
  language_code: "`language_code`",
  apply_text_normalization: "normalization",
};
const KEYS = { needed: "yes", optional: "may be", none: "no" } as const;

function section(from: string, to: string): string {
  const start = PAGE.indexOf(from);
  return PAGE.slice(start, PAGE.indexOf(to, start));
}

function capabilitiesOf({ create }: Service, baseUrl = "http://127.0.0.1:1"): Capabilities {
  return create({ name: "one", key: "", baseUrl, model: "", sampleRate: null }).capabilities;
}

/**
 * What it is asked by, its times, what it makes, its settings; its address, key, requests and first audio; what is added to it,
 * and what proves that.
 */
function rowsOf(name: string) {
  const [made, limits, added] = ROWS.filter((row) => row.name === name).map(({ cells }) => cells);
  return { made: made ?? [], limits: limits ?? [], added: added ?? [] };
}

function settingsOf({ settings, breaks }: Capabilities): string {
  const own = settings.map((setting) => SETTINGS[setting] ?? setting);
  return [...own, ...(breaks === "taken" ? ["`<break>`"] : [])].join(", ") || "-";
}

function openOf({ startLimit, maxOpen }: Capabilities): string {
  if (maxOpen === undefined) return `${startLimit}`;
  return maxOpen === startLimit
    ? `${startLimit}, never more`
    : `${startLimit} of one's own, never more than ${maxOpen}`;
}

function firstAudioOf({ firstAudioMs }: Capabilities): string {
  return firstAudioMs === undefined ? "`--first-audio-ms`" : `${firstAudioMs / 1000} s`;
}

describe("docs/upstreams.md", () => {
  it("has a row for each service in all three tables, and no other", () => {
    const names = Object.keys(SERVICES).flatMap((name) => [name, name, name]);
    expect(ROWS.map(({ name }) => name).sort()).toEqual(names.sort());
  });

  it.each(Object.entries(SERVICES))("says what %s gives, and what is set by itself", (name, service) => {
    const { made, limits } = rowsOf(name);
    const all = capabilitiesOf(service);
    const [, times = "", formats = "", settings] = made;
    expect(times.startsWith("none")).toBe(all.times === "none");
    expect(settings).toBe(settingsOf(all));
    const rates = all.formats.find(({ codec }) => codec === "pcm")?.sampleRates ?? [];
    if (rates.length > 1) expect(formats).toContain(`${NUMBERS.get(rates.length)} rates`);
    for (const [codec, word] of [
      ["ulaw", "mu-law"],
      ["alaw", "A-law"],
    ] as const)
      expect(formats.includes(word)).toBe(all.formats.some((format) => format.codec === codec));
    const [url, key, open, firstAudio] = limits;
    expect(url).toBe(service.url === null ? "-" : `\`${service.url}\``);
    expect(key).toBe(KEYS[service.key]);
    // A server of OpenAI's shape is one's own, or OpenAI.
    const vendor = name === "openai" ? capabilitiesOf(service, "https://api.openai.com") : null;
    expect(open).toBe([vendor, all].flatMap((each) => (each === null ? [] : [openOf(each)])).join("; "));
    const first =
      vendor === null ? firstAudioOf(all) : `${firstAudioOf(vendor)}; ${firstAudioOf(all)} of one's own`;
    expect(firstAudio).toBe(first);
  });

  it.each(Object.entries(SERVICES))("says what is added to %s, and which test proves it", (name, service) => {
    const [added = "", proof = ""] = rowsOf(name).added;
    const { times } = capabilitiesOf(service);
    expect(added).toMatch(times === "none" ? /^estimated times/ : /^times of (?:characters|words)/);
    expect(proof).toBe(`\`test/upstream/services/${name}.test.ts\``);
    expect(existsSync(new URL(`${name}.test.ts`, import.meta.url))).toBe(true);
  });

  it("says that none was run against the real service", () => {
    expect(PAGE).toContain("None of these was run against the real service");
  });

  it("says the longest text of those that have one", () => {
    const limited = Object.entries(SERVICES).flatMap(([name, service]) => {
      const { maxChars } = capabilitiesOf(service, "https://api.openai.com");
      return maxChars === undefined ? [] : [[name, maxChars]];
    });
    expect(limited).toEqual([
      ["speechify", 20_000],
      ["openai", 4096],
      ["soniox", 1500],
    ]);
    expect(PAGE).toContain("Texts of 4096 characters are OpenAI's longest, of 20,000 Speechify's");
    expect(PAGE).toContain("so a text has 1500 characters at most");
  });
});
