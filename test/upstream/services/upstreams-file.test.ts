import { describe, expect, it } from "vitest";
import { readUpstreamsFile, type Secrets } from "../../../src/upstream/services/upstreams-file.ts";

const SECRETS: Secrets = {
  env: (name) => ({ CARTESIA_API_KEY: "sk_car_secret", BLANK_KEY: "sk car" })[name],
  file: (path) => {
    if (path === "/keys/hume") return "hume-secret\n";
    throw new Error("ENOENT: no such file");
  },
};

describe("the file of upstreams", () => {
  it("is read with keys, defaults, and every field", () => {
    const file = [
      { name: "cartesia", "key-env": "CARTESIA_API_KEY" },
      {
        name: "feelings",
        service: "hume",
        "key-file": "/keys/hume",
        model: "1",
        voices: ["Ava*"],
        "max-open": 3,
      },
      { name: "local", service: "openai", url: "http://127.0.0.1:8880/v1/", "sample-rate": 24_000 },
    ];
    const usual = { model: "", sampleRate: null, voices: [], maxOpen: null };
    expect(readUpstreamsFile(JSON.stringify(file), SECRETS).services).toEqual([
      {
        ...usual,
        name: "cartesia",
        service: "cartesia",
        baseUrl: "https://api.cartesia.ai",
        key: "sk_car_secret",
      },
      {
        ...usual,
        name: "feelings",
        service: "hume",
        baseUrl: "https://api.hume.ai",
        key: "hume-secret",
        model: "1",
        voices: ["Ava*"],
        maxOpen: 3,
      },
      {
        ...usual,
        name: "local",
        service: "openai",
        baseUrl: "http://127.0.0.1:8880",
        key: "",
        sampleRate: 24_000,
      },
    ]);
  });

  const own = { name: "local", service: "openai", url: "http://127.0.0.1:1" };
  it.each<readonly [string, unknown, string]>([
    ["no list", { voices: {} }, "no list of upstreams"],
    ["an entry that is no object", ["cartesia"], "entry 1"],
    ["a field that is not known", [{ ...own, keyEnv: "X" }], '"keyEnv"'],
    ["no name", [{ service: "openai" }], "name: expected"],
    ["a name that can't be one", [{ ...own, name: "My Voice" }], "small letters"],
    ["a service that is not known", [{ name: "playht" }], "one of cartesia, inworld, hume"],
    ["a name twice", [own, own], "two entries are called local"],
    ["no url of an engine of one's own", [{ name: "piper" }], "url: expected"],
    ["a url that is none", [{ ...own, url: "127.0.0.1" }], "http(s)://host"],
    ["no key", [{ name: "cartesia" }], "key-env: expected"],
    ["a key that is not set", [{ name: "cartesia", "key-env": "OTHER_API_KEY" }], "OTHER_API_KEY is not"],
    ["a variable that child processes would see", [{ name: "cartesia", "key-env": "CARTESIA" }], "_KEY"],
    ["a key with blanks", [{ name: "cartesia", "key-env": "BLANK_KEY" }], "visible ASCII"],
    ["a file that is not there", [{ name: "cartesia", "key-file": "/nowhere" }], "ENOENT"],
    [
      "two keys",
      [{ name: "hume", "key-env": "CARTESIA_API_KEY", "key-file": "/keys/hume" }],
      "one of key-env",
    ],
    [
      "a key where none is asked for",
      [{ name: "piper", url: own.url, "key-env": "CARTESIA_API_KEY" }],
      "no key",
    ],
    ["a rate out of range", [{ ...own, "sample-rate": 1 }], "from 8000 to 48000"],
    ["no requests at all", [{ ...own, "max-open": 0 }], "from 1 to"],
    ["voices that are no list", [{ ...own, voices: "af_heart" }], "a list of at most"],
  ])("%s is refused, with what is expected", (_what, file, hint) => {
    const read = () => readUpstreamsFile(JSON.stringify(file), SECRETS);
    expect(read).toThrow(expect.objectContaining({ code: "invalid_config", field: "upstreams" }));
    expect(read).toThrow(hint);
    expect(read).not.toThrow("sk_car_secret");
    expect(read).not.toThrow("sk car");
  });

  it("what is no JSON is refused", () => {
    expect(() => readUpstreamsFile("[{", SECRETS)).toThrow("it is no JSON");
    expect(() => readUpstreamsFile('[\n  { "name": "kokoro" "url": "x" }\n]', SECRETS)).toThrow(
      "it is no JSON from line 2, column 22 on",
    );
  });
});
