/** Every error code is documented, every documented code exists, and the numbers are the table's. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ERRORS, GatewayError, toGatewayError } from "../src/errors.ts";

const page = readFileSync(new URL("../docs/protocol.md", import.meta.url), "utf8");
const rows = [...page.matchAll(/^\| `([a-z_]+)` \| (.+?) \| (\d+) \| (\d+) \| (yes|no) \|$/gm)].map(
  (match) => ({
    code: match[1],
    meaning: match[2],
    closeCode: Number(match[3]),
    httpStatus: Number(match[4]),
    isRetryable: match[5] === "yes",
  }),
);

describe("errors", () => {
  it("docs/protocol.md lists exactly the table of errors.ts", () => {
    const table = Object.entries(ERRORS).map(([code, row]) => ({ code, ...row }));
    expect(rows).toEqual(table);
  });

  it("every close code may be sent by a server", () => {
    for (const row of Object.values(ERRORS)) {
      expect(
        [1000, 1001, 1008].includes(row.closeCode) || (row.closeCode >= 4000 && row.closeCode <= 4999),
      ).toBe(true);
    }
  });

  it("toGatewayError() keeps ours and wraps anything else as internal with its cause", () => {
    const ours = new GatewayError("queue_full", "Queue is full");
    expect(toGatewayError(ours)).toBe(ours);
    const cause = new TypeError("x is not a function");
    expect(toGatewayError(cause)).toMatchObject({ code: "internal", cause });
  });
});
