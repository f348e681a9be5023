/** What becomes of the gateway's own errors on the way to the client: full queues and shutdowns in the interface's words. */
import { GatewayError } from "../../errors.ts";
import { ApiError } from "../api-error.ts";

/** 429 for `queue_full`, 503 for `draining`; anything else as it is. */
export function asApiError(thrown: unknown): unknown {
  if (!(thrown instanceof GatewayError)) return thrown;
  if (thrown.code === "queue_full") return ApiError.busy();
  if (thrown.code === "draining") return ApiError.unavailable(thrown.message);
  return thrown;
}
