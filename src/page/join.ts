/** What the page asks the gateway for: Opus in frames of 20 ms, and everything that can be shown beside it. */
import { type Connection, connect } from "../client/index.ts";
import type { Route } from "./route.ts";

/** `token`: null where the gateway has no keys, as far as we know. */
export function joinSession({ session, isListener }: Route, token: string | null): Promise<Connection> {
  return connect({
    baseUrl: location.origin,
    session,
    settings: {
      // Whoever comes with a token gets the role that it allows.
      ...(isListener ? { role: "listener" } : token === null ? { role: "both" } : {}),
      format: "opus_48000",
      frame_ms: 20,
      pace: "realtime",
      events: ["characters", "words", "segments", "cues", "presence"],
    },
    ...(token === null ? {} : { token }),
    reconnect: { maxTries: Number.POSITIVE_INFINITY },
  });
}
