/** A gateway in front of an upstream that speaks: what most tests over whole calls and connections begin with. */
import { speaking, startFakeUpstream } from "./fake-upstream.ts";
import { gatewayAt, type TestGateway } from "./start-gateway.ts";

export interface SpeakingGateway extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly upstreamUrl: string;
}

/** Without trimming, whole texts are passed through byte for byte. */
export async function startSpeaking({ msPerChar }: { readonly msPerChar: number }): Promise<SpeakingGateway> {
  const upstream = await startFakeUpstream(speaking({ msPerChar }));
  const gateway = await gatewayAt(upstream.url, { trimMs: 0 });
  return {
    gateway,
    upstreamUrl: upstream.url,
    [Symbol.asyncDispose]: async () => {
      await gateway.close();
      await upstream.close();
    },
  };
}
