/** How late the embedded service says that it is, as the gateway's metrics show it. */
import { expect, it } from "vitest";
import { startService } from "../../src/service/service.ts";
import { speechAnswer, speechFor, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";

async function behindAfterSpeech(gateway: TestGateway): Promise<string | undefined> {
  await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
  client.send({ type: "speak", text: "Hello there." });
  await client.next("utterance.done");
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  return /^voicewire_service_behind_seconds (\S+)$/m.exec(metrics)?.[1];
}

it("the embedded service's last answer is shown, another upstream's word for it is not", async () => {
  await using upstream = await startFakeUpstream((request) => {
    const answer = speechAnswer(speechFor(request), { isTimed: true });
    return { ...answer, headers: { ...answer.headers, "x-voicewire-behind-ms": "250" } };
  });
  await using own = await gatewayAt(upstream.url, {}, { passesFaults: true });
  expect(await behindAfterSpeech(own)).toBe("0.25");
  await using other = await gatewayAt(upstream.url);
  expect(await behindAfterSpeech(other)).toBeUndefined();
});

it("the service says it with each stream, and not with an answer that is sent whole", async () => {
  const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false });
  try {
    const ask = async (path: string): Promise<string | null> => {
      const answer = await fetch(`${service.url}/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ text: "Hello there." }),
      });
      expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(0);
      return answer.headers.get("x-voicewire-behind-ms");
    };
    for (const path of ["/stream", "/stream/with-timestamps"]) expect(await ask(path)).toMatch(/^\d+$/);
    expect(await ask("")).toBeNull();
  } finally {
    await service.close();
  }
});
