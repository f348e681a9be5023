/** What the sections of this folder answer where something is not in order. */
import { GatewayError } from "../../errors.ts";
import { Refusal } from "../http/refusal.ts";

/** The refusal that the action throws; null where it throws none. Anything else is thrown on. */
export function refusalOf(action: () => void): Refusal | null {
  try {
    action();
    return null;
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown;
    throw thrown;
  }
}

/** A full queue and a shutdown in the interface's words; anything else as it is. */
export function asRefusal(thrown: unknown): unknown {
  if (!(thrown instanceof GatewayError)) return thrown;
  if (thrown.code === "queue_full") {
    const message = "The system is busy, try again later.";
    return Refusal.of({ type: "rate_limit_error", code: "system_busy", message });
  }
  if (thrown.code === "draining") {
    return Refusal.of({ type: "service_unavailable", code: "service_unavailable", message: thrown.message });
  }
  return thrown;
}

/** 400 `validation_error`. */
export function invalid(code: string, message: string, param?: string): Refusal {
  return Refusal.of({ type: "validation_error", code, message, ...(param === undefined ? {} : { param }) });
}

/** 403: only for enterprise customers. */
export function enterpriseOnly(message: string, param: string): Refusal {
  return Refusal.of({ type: "authorization_error", code: "feature_not_available", message, param });
}
