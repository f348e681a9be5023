/** A text that its speaker has not ended: what a broken connection does to it, and what a closed one. */
import { expect, it } from "vitest";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const QUERY = "?format=none&events=words&role=both";

it("waits for a speaker whose connection broke, and ends with one that was closed", async () => {
  await using upstream = await startFakeUpstream(speaking({ msPerChar: 10 }));
  await using gateway = await gatewayAt(upstream.url);
  await using watcher = await TestClient.connect(gateway, `/live/open${QUERY}`);
  const speaker = await TestClient.connect(gateway, `/live/open${QUERY}`);
  const { resume_token } = await speaker.next("hello");
  speaker.send({ type: "text", text: "Hello there. And", utterance_id: "u" });
  await watcher.next("utterance.started");
  speaker.socket.terminate();
  await speaker.untilClosed();
  const back = await TestClient.connect(gateway, `/live/open${QUERY}&resume=${resume_token}`);
  expect((await back.next("hello")).resumed).toBe(true);
  back.send({ type: "text", text: " again.", utterance_id: "u" });
  // Closed with a close frame, it does not come back: the text is spoken unchanged.
  back.socket.close();
  const { characters_spoken } = await watcher.next("utterance.done");
  expect(characters_spoken).toBe("Hello there. And again.".length);
});
