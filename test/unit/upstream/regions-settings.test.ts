/** Regions by setting: what they are called, and which lists are taken. */
import { describe, expect, it } from "vitest";
import { chooseUpstream } from "../../../src/cli/serve/upstream.ts";
import { settingsFrom } from "../../../src/cli/settings.ts";
import type { Config } from "../../../src/config.ts";
import { createUpstream } from "../../../src/upstream/regional-upstream.ts";
import { REGION_URLS, regionNames } from "../../../src/upstream/vendors/vendor-regions.ts";

function choose(settings: Partial<Config>) {
  return chooseUpstream(settingsFrom({ options: settings }).config);
}

describe("chooseUpstream() with lists", () => {
  it("takes regions in order of preference, `global` among them", () => {
    expect(choose({ upstreamRegion: "eu, us,global", upstreamKey: "k" })).toEqual({
      kind: "remote",
      baseUrl: [REGION_URLS.eu, REGION_URLS.us, REGION_URLS.global],
      label: `${REGION_URLS.eu} (region eu), then ${REGION_URLS.us} (region us), then ${REGION_URLS.global} (region global)`,
    });
  });

  it("takes URLs in order of preference, each with or without its version", () => {
    expect(choose({ upstreamUrl: "http://a:1/v1, https://b/x/v1/" })).toMatchObject({
      kind: "remote",
      baseUrl: ["http://a:1", "https://b/x"],
    });
    expect(choose({ upstreamUrl: "http://a:1" })).toMatchObject({ baseUrl: "http://a:1" });
  });

  it.each<[Partial<Config>, RegExp]>([
    [{ upstreamRegion: "us,mars", upstreamKey: "k" }, /"mars", expected one of global, us, eu, in, sg/],
    [{ upstreamRegion: "us,", upstreamKey: "k" }, /"", expected one of/],
    [{ upstreamRegion: "us,eu,us", upstreamKey: "k" }, /listed twice/],
    [{ upstreamRegion: "us,eu" }, /upstreamKey: not set.*region us, eu/],
    [{ upstreamUrl: "http://a,embedded" }, /`embedded` in a list/],
    [{ upstreamUrl: "http://a,,http://b" }, /an empty entry/],
    [{ upstreamUrl: "http://a,ftp://b" }, /no URL/],
    [{ upstreamUrl: "http://a,http://a/v1" }, /listed twice/],
  ])("refuses %j", (settings, message) => {
    expect(() => choose(settings)).toThrow(message);
  });
});

describe("regionNames()", () => {
  it("are the vendor's regions, else hosts, with the path where hosts are the same", () => {
    expect(
      regionNames([
        REGION_URLS.sg,
        "https://api.elevenlabs.io/",
        "http://h:1/a",
        "http://h:1/b",
        "http://h:2/c",
      ]),
    ).toEqual(["sg", "global", "h:1/a", "h:1/b", "h:2"]);
  });
});

describe("createUpstream() with lists", () => {
  const bounds = { maxConnections: 1, maxQueued: 1, timeoutMs: 1000, patienceMs: 0, failoverMs: 1000 };
  const options = { key: "", ...bounds };
  it.each([[[]], [Array.from({ length: 9 }, (_, index) => `http://h${index}`)]])(
    "refuses none and more than eight: %j",
    (baseUrl) => {
      expect(() => createUpstream({ ...options, baseUrl })).toThrow(/base URLs, expected 1 to 8/);
    },
  );

  it("refuses a list with one that can't be used, without repeating it", () => {
    const baseUrl = ["http://127.0.0.1", "http://user:hunter2@127.0.0.2"];
    expect(() => createUpstream({ ...options, baseUrl })).toThrow(/^(?!.*hunter2).*upstream-url/);
  });
});
