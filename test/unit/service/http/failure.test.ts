/** What clients of the service are told of errors that come from behind its interface. */
import { expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import { ApiError } from "../../../../src/service/api-error.ts";
import { asApiError } from "../../../../src/service/http/failure.ts";

it.each([
  ["queue_full", 429, "system_busy"],
  ["draining", 503, "service_unavailable"],
  ["voice_model_broken", 400, "voice_model_broken"],
] as const)("%s is answered with %i %s", (code, status, word) => {
  const answer = asApiError(new GatewayError(code, "It can't be done"));
  if (!(answer instanceof ApiError)) throw new Error("It is passed on as it is");
  expect(answer.httpStatus).toBe(status);
  expect(answer.body("trace").detail).toMatchObject({ code: word });
});

it("what is none of these is passed on as it is", () => {
  const error = new GatewayError("internal", "A fault");
  expect(asApiError(error)).toBe(error);
});
