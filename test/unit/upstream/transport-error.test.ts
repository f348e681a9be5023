/** Failures below HTTP that loopback can't be made to show, by their codes. */
import { describe, expect, it } from "vitest";
import { FaultLog } from "../../../src/upstream/transport/fault-log.ts";
import { type Progress, transportError } from "../../../src/upstream/transport/transport-error.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

const faults = new FaultLog(watchedLog, new FakeClock());

function codeOf(code: string, progress: Progress, name = "Error"): string {
  const thrown = Object.assign(new Error("words of the library"), { code, name });
  return transportError(thrown, { faults, progress }).code;
}

describe("transportError()", () => {
  it.each([
    "ENOTFOUND",
    "EAI_AGAIN",
    "EHOSTUNREACH",
    "ETIMEDOUT",
    "UND_ERR_CONNECT_TIMEOUT",
    "EPROTO",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
  ])("%s before the answer is upstream_unreachable", (code) => {
    expect(codeOf(code, "asking")).toBe("upstream_unreachable");
  });

  it.each(["ECONNRESET", "EPIPE", "ETIMEDOUT", "UND_ERR_SOCKET"])(
    "%s inside the answer is upstream_truncated",
    (code) => {
      expect(codeOf(code, "answering")).toBe("upstream_truncated");
    },
  );

  it("does not keep a parser error, which carries the bytes it choked on", () => {
    for (const message of ["(Invalid EOF state)", "(Invalid character in chunk size)"]) {
      const thrown = Object.assign(new Error(message), { name: "HTTPParserError", data: "SecretWords" });
      const error = transportError(thrown, { faults, progress: "answering" });
      expect(error.cause).toBeUndefined();
    }
  });

  it("is internal where this program is at fault", () => {
    expect(codeOf("UND_ERR_INVALID_ARG", "asking")).toBe("internal");
    expect(transportError(new TypeError("x"), { faults, progress: "asking" }).code).toBe("internal");
  });
});
