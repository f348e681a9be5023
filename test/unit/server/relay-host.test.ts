/** Clients of other nodes whose keys this node does not have. */
import { expect, it } from "vitest";
import { ANYBODY } from "../../../src/access/caller.ts";
import { passFacts } from "../../../src/server/passed-facts.ts";
import { relayHost } from "../../../src/server/relayed/relay-host.ts";

it("says what to do where this node does not know a client's key, and nothing where it does", () => {
  const said: unknown[] = [];
  const nobody = () => undefined;
  const takeIn = { client: nobody, request: nobody, call: nobody };
  const hostWith = (received: typeof ANYBODY | null) => {
    const access = { received: () => received };
    return relayHost(takeIn, {
      door: { access: access as never },
      log: { warn: (_: object, line: string) => said.push(line) },
    });
  };
  const facts = passFacts("client", { sessionId: "s", caller: ANYBODY, address: "" }, {});
  expect(hostWith(ANYBODY).readFacts(facts)).toMatchObject({ sessionId: "s" });
  expect(said).toEqual([]);
  expect(hostWith(null).readFacts(facts)).toBeUndefined();
  expect(said).toEqual([expect.stringContaining("Give all nodes the same keys-file")]);
});
