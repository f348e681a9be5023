/** A gateway in front of an upstream that speaks: what most tests over whole calls and connections begin with. */
import { afterAll, beforeAll } from "vitest";
import { type FakeUpstream, speaking, startFakeUpstream } from "./fake-upstream.ts";
import { gatewayAt, type TestGateway } from "./start-gateway.ts";

export interface SpeakingGateway {
  /** Both are there while the tests run. */
  readonly gateway: TestGateway;
  readonly upstreamUrl: string;
}

/**
 * For all tests of a file or block. Without trimming, so that whole texts are passed through byte for byte. Throws where it
 * is asked before the first test.
 */
export function useSpeakingGateway({ msPerChar }: { readonly msPerChar: number }): SpeakingGateway {
  let upstream: FakeUpstream | undefined;
  let gateway: TestGateway | undefined;
  beforeAll(async () => {
    upstream = await startFakeUpstream(speaking({ msPerChar }));
    gateway = await gatewayAt(upstream.url, { trimMs: 0 });
  });
  afterAll(async () => {
    await gateway?.close();
    await upstream?.close();
  });
  return {
    get gateway() {
      return there(gateway);
    },
    get upstreamUrl() {
      return there(upstream).url;
    },
  };
}

function there<T>(started: T | undefined): T {
  if (started === undefined) throw new Error("Asked before the first test, or it did not start");
  return started;
}
