/** When the client has gone, or its answer is over, whatever is done for it ends. */
import type { ServerResponse } from "node:http";

interface ClientSignal {
  readonly signal: AbortSignal;
  /** The answer's own end is no leaving: after this the signal is silent. Idempotent. */
  release(): void;
}

export function clientSignal(response: ServerResponse): ClientSignal {
  const controller = new AbortController();
  const onClose = (): void => controller.abort(new Error("The client has gone"));
  response.once("close", onClose);
  if (response.destroyed) onClose();
  return {
    signal: controller.signal,
    release: () => {
      response.off("close", onClose);
    },
  };
}
