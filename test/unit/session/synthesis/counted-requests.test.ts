/** Which requests `voicewire_upstream_requests_total` counts: the share of them that fails is an alert. */
import { expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import { createRig } from "../../../helpers/session-rig.ts";

it("a try counts once: when it has left, or when it failed before", async () => {
  const rig = createRig();
  const { send } = rig.join("format=ulaw_8000");
  send({ type: "speak", text: "Hello there." });
  await Promise.resolve();
  expect(rig.counters.upstreamRequests).toBe(0);
  rig.requests[0]?.handlers.error(new GatewayError("upstream_unreachable", "Nobody is there"));
  expect(rig.counters).toMatchObject({ upstreamRequests: 1, upstreamErrors: 1 });
  rig.clock.advance(1000);
  // Turned away, and asked for again.
  rig.requests[1]?.handlers.requestSent?.();
  rig.requests[1]?.handlers.requestSent?.();
  rig.requests[1]?.handlers.error(new GatewayError("upstream_failed", "It failed"));
  expect(rig.counters).toMatchObject({ upstreamRequests: 2, upstreamErrors: 2 });
});
