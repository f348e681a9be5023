/** Times that the speech service itself calls estimated: those of its voices that tell none. */
import { describe, expect, it } from "vitest";
import { isTimed, speechAnswer, speechFor, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const TEXT = "Hello there, general listener.";

describe("times that the service calls estimated", () => {
  it.each([
    ["estimated", "estimated"],
    [undefined, "exact"],
  ])(
    "x-voicewire-timing: %s gives events with timing %s, spoken at once or prepared",
    async (header, timing) => {
      await using upstream = await startFakeUpstream();
      upstream.use((request) => {
        const answer = speechAnswer(speechFor(request), { isTimed: isTimed(request) });
        const timed = header === undefined ? {} : { "x-voicewire-timing": header };
        return { ...answer, headers: { ...answer.headers, ...timed } };
      });
      await using gateway = await gatewayAt(upstream.url);
      const query = "format=none&pace=burst&events=characters,words";
      await using client = await TestClient.connect(gateway, `/live/s?${query}`);
      client.send({ type: "speak", text: TEXT, voice_id: "v" });
      expect(await client.next("utterance.done")).toMatchObject({ timing });
      client.send({ type: "prepare", prepared_id: "p", text: TEXT, voice_id: "v" });
      await client.next("prepared");
      client.send({ type: "play", prepared_id: "p" });
      await client.next("utterance.done", 2);
      const events = [...client.eventsOf("words"), ...client.eventsOf("characters")];
      expect(events.length).toBeGreaterThan(2);
      expect(new Set(events.map((event) => event.timing))).toEqual(new Set([timing]));
    },
  );
});
