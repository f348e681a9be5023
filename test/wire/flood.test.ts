/** One client sends far more than anybody should: the others go on, and it gets an error and is closed where it does not stop. */
import { expect, it } from "vitest";
import { ERRORS } from "../../src/errors.ts";
import { MAX_REFUSALS_A_SECOND } from "../../src/server/sockets/refusals.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const LETTER = JSON.stringify({ type: "text", text: "a", utterance_id: "u" });

it("a hundred thousand one-letter tokens: who sends on gets an error and is closed, and others hear all of theirs", async () => {
  await using upstream = await startFakeUpstream(speaking({ msPerChar: 50 }));
  // All of them may wait for their turn: the bound of what waits goes by it, and it is refused text that is meant here.
  await using gateway = await gatewayAt(upstream.url, { maxMessageBytes: 1_048_576 });
  await using listener = await TestClient.connect(
    gateway,
    "/live/calm?format=ulaw_8000&events=none&lead_ms=0",
  );
  listener.send({ type: "speak", text: "Nobody else should hear anything of the flood at all." });
  await listener.next("utterance.started");
  const flooder = await TestClient.connect(gateway, "/live/flood?format=none&events=none");
  const received: Record<string, unknown>[] = [];
  flooder.socket.on("message", (data) => received.push(JSON.parse(String(data)) as Record<string, unknown>));
  // As one piece, so that they are read in one go.
  for (let sent = 0; sent < 100_000; sent += 1) flooder.socket.send(LETTER);
  const { code } = await flooder.untilClosed();
  expect(code).toBe(ERRORS.too_many_refusals.closeCode);
  expect(received.filter(({ type }) => type === "paused")).toHaveLength(1);
  expect(received.at(-1)).toMatchObject({ type: "error", code: "too_many_refusals", retry_after_ms: 1000 });
  const refused = received.filter(({ code: own }) => own === "text_too_long").length;
  expect(refused).toBeGreaterThan(MAX_REFUSALS_A_SECOND);
  // A slow machine refuses less in the first second, and goes on in the next one: but not to the end.
  expect(refused).toBeLessThan(50_000);
  // What was accepted is spoken, and the listener of another session hears all of its own.
  await listener.next("utterance.done");
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  expect(metrics).toContain("voicewire_connections_flooding_total 1");
});
