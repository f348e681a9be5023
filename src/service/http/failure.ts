/** What becomes of the gateway's own errors on the way to the client: full queues and shutdowns in the interface's words. */
import { GatewayError } from "../../errors.ts";
import { ApiError } from "../api-error.ts";

/**
 * 429 for `queue_full`, 503 for `draining`, 400 for `voice_model_broken`: asked again it fails again, and all other voices work.
 * Anything else as it is.
 */
export function asApiError(thrown: unknown): unknown {
  if (!(thrown instanceof GatewayError)) return thrown;
  if (thrown.code === "queue_full") return ApiError.busy();
  if (thrown.code === "draining") return ApiError.unavailable(thrown.message);
  if (thrown.code === "voice_model_broken") {
    return ApiError.unfit(thrown.code, thrown.message, { param: "voice_id" });
  }
  return thrown;
}
