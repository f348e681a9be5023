/** SIGTERM while many speak: `serve` says what it has taken to the last word, and ends then. */
import { expect, test, vi } from "vitest";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { toldWords } from "../kit/told-words.ts";
import { PATIENT, serve } from "./program.ts";

vi.setConfig(PATIENT);
const SPEAKERS = 30;

test(`${SPEAKERS} utterances that had begun are finished, each with all its words and its audio`, async () => {
  await using upstream = await startFakeUpstream(speaking({ msPerChar: 100 }));
  const { program, url } = await serve([
    ...["--upstream-url", upstream.url, "--voice", "tone-a", "--drain-ms", "60000"],
  ]);
  await using _ = program;
  const gateway = { wsUrl: url.replace("http", "ws") };
  const texts = Array.from(
    { length: SPEAKERS },
    (_, index) => `Number ${index} is said to its very last word.`,
  );
  const clients = await Promise.all(
    texts.map((_, index) =>
      TestClient.connect(gateway, `/live/drain-${index}?format=ulaw_8000&events=words`),
    ),
  );
  for (const [index, client] of clients.entries()) client.send({ type: "speak", text: texts[index] });
  await Promise.all(clients.map((client) => client.next("utterance.started")));
  expect(clients.flatMap((client) => client.eventsOf("utterance.done"))).toEqual([]);
  program.child.kill("SIGTERM");
  await Promise.all(clients.map((client) => client.untilClosed()));
  expect((await program.ended).code).toBe(0);
  for (const [index, client] of clients.entries()) {
    const [done] = client.eventsOf("utterance.done");
    expect(done).toMatchObject({ outcome: "done" });
    expect(
      toldWords(client.events)
        .words.map(({ text }) => text)
        .join(" "),
    ).toBe(texts[index]?.replace(".", ""));
    // 8 bytes a millisecond, from the beginning of the timeline to the utterance's end.
    expect(client.audio.length / 8).toBeGreaterThanOrEqual(done?.end_ms ?? Number.POSITIVE_INFINITY);
    expect(client.closed?.code).toBe(1001);
  }
});
