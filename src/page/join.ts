/** What the page asks the gateway for: Opus in frames of 20 ms, and everything that can be shown beside it. */
import { type Connection, connect } from "../client/index.ts";
import type { Route } from "./route.ts";

export function joinSession({ session, isListener }: Route): Promise<Connection> {
  return connect({
    baseUrl: location.origin,
    session,
    settings: {
      role: isListener ? "listener" : "both",
      format: "opus_48000",
      frame_ms: 20,
      pace: "realtime",
      events: ["characters", "words", "segments", "cues", "presence"],
    },
    reconnect: { maxTries: Number.POSITIVE_INFINITY },
  });
}
