/** One request's faults put to work: before its answer begins, and on the parts that deliver it. */
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { ApiError } from "../api-error.ts";
import type { JobOpener, Outlet } from "../http/speech/delivery.ts";
import { CutOutlet } from "./cut-outlet.ts";
import type { Fault } from "./fault.ts";
import { faultyOpener } from "./opener.ts";

const API_ERRORS = {
  429: () => ApiError.busy(),
  500: () =>
    ApiError.of({ type: "internal_error", code: "internal_error", message: "Internal server error." }),
  503: () => ApiError.unavailable("The service is unavailable, try again later."),
} as const;

/** Waits as the fault says, then throws the ApiError that was asked for, if one was. */
export async function delayOrRefuse(faults: readonly Fault[], reply: FastifyReply): Promise<void> {
  for (const fault of faults) {
    if (fault.kind === "latency") await waitWhileOpen(fault.ms, reply.raw);
  }
  for (const fault of faults) {
    if (fault.kind !== "status") continue;
    if (fault.retry_after !== undefined) reply.header("retry-after", String(fault.retry_after));
    throw API_ERRORS[fault.status]();
  }
}

/** `voices` and `response` with the faults between them; the same ones where there are none. */
export function withFaults(
  faults: readonly Fault[],
  parts: { readonly voices: JobOpener; readonly response: ServerResponse },
): { readonly opener: JobOpener; readonly response: Outlet } {
  const { voices, response } = parts;
  const cut = faults.find((fault) => fault.kind === "reset" || fault.kind === "truncated");
  return {
    opener: faultyOpener(voices, faults),
    response:
      cut === undefined ? response : new CutOutlet(response, { kind: cut.kind, afterBytes: cut.after_bytes }),
  };
}

/** Resolves after `ms`, or when the client has gone. */
function waitWhileOpen(ms: number, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      clearTimeout(timer);
      response.off("close", settle);
      resolve();
    };
    const timer = setTimeout(settle, ms);
    response.once("close", settle);
  });
}
