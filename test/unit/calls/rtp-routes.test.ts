/** Calls over RTP that can't begin: what is answered, and that nothing stays open. */
import { describe, expect, it } from "vitest";
import { startCarrierEdge } from "./carrier-edge.ts";

describe("POST /carrier/rtp with a peer that is named", () => {
  it("a call that its session refuses is answered with the error, and its port is given back", async () => {
    await using gateway = await startCarrierEdge({ maxCalls: 1 });
    const take = (session: string): Promise<Response> =>
      fetch(`${gateway.url}/carrier/rtp`, {
        method: "POST",
        body: JSON.stringify({ session, remote: "127.0.0.1:9" }),
      });
    const refused = await take("not a session");
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { code: "invalid_field" } });
    expect(gateway.sessions.count).toBe(0);
    // There is room for one.
    const taken = await take("call-17");
    expect(taken.status).toBe(201);
    expect(gateway.sessions.count).toBe(1);
  });
});
