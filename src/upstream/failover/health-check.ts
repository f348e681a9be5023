/** One look at an upstream that nobody asks: whether it answers a small GET, within a time, whatever it answers. */
import type { ErrorCode } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { HttpUpstream } from "../http-upstream.ts";
import { isUpstreamFault } from "../transport/faults.ts";

/** Small, free, and every service of this interface has it. */
const CHECK_PATH = "/v1/models";
/** Longest wait for the answer once it is asked, connecting included, ms. */
const ANSWER_MS = 3000;
/** Longest that all of it may take: waiting for a connection, and reading what it has to say. */
const MAX_CHECK_MS = 6000;

/** null: it works; undefined: it could not be asked, which says nothing of it. */
export type CheckResult = ErrorCode | null | undefined;

/** Resolves within MAX_CHECK_MS, and when the upstream is closed; never rejects. */
export function checkHealth(upstream: HttpUpstream, clock: Clock): Promise<CheckResult> {
  return new Promise((resolve) => {
    let result: CheckResult;
    const settle = (settled: CheckResult): void => {
      deadline.cancel();
      resolve(settled);
    };
    const asked = upstream.forward(
      { method: "GET", path: CHECK_PATH, headers: [], body: null, group: "" },
      {
        head: (status) => {
          result = status < 500 ? null : "upstream_failed";
        },
        // Read to its end, so that the connection stays for whoever comes next.
        data: () => undefined,
        end: () => settle(result),
        error: (error) => settle(result === undefined && isUpstreamFault(error) ? error.code : result),
      },
      // Judged by the caller: an answer to a check says less than one to a request.
      { headersMs: ANSWER_MS, onOutcome: () => undefined },
    );
    const deadline = clock.at(clock.nowMs() + MAX_CHECK_MS, () => {
      asked.abort();
      resolve(result);
    });
  });
}
