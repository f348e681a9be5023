import { describe, expect, it } from "vitest";
import { readKeys } from "../../../src/access/keys.ts";

const SECRET = Buffer.alloc(32, "s").toString("base64url");

function messageOf(file: object): string {
  try {
    readKeys(JSON.stringify(file));
  } catch (thrown) {
    return String(thrown);
  }
  return "";
}

describe("readKeys()", () => {
  it("says where a file is no JSON, without what stands there", () => {
    const read = (json: string) => () => readKeys(json);
    expect(read('{\n  "keys": [\n    { "id": "app" "hash": "" }\n  ]\n}')).toThrow(
      "it is no JSON from line 3, column 19 on",
    );
    expect(read(`{ "secret": ${SECRET} }`)).toThrow(/^Setting keys-file: it is no JSON \(/);
  });

  it("names an unknown field, but never a secret that stands where a name should", () => {
    const key = { id: "app", algorithm: "HS256", secret: SECRET };
    expect(messageOf({ keys: [key], sercet: 1 })).toContain("it has an unknown field: sercet");
    for (const file of [{ keys: [{ ...key, [SECRET]: "secret" }] }, { keys: [key], [SECRET]: 1 }]) {
      expect(messageOf(file)).toContain("unknown field");
      expect(messageOf(file)).not.toContain(SECRET);
    }
  });
});
