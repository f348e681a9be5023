/** Texts that name a language and no voice. */
import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const VOICES = "de=german, pt-BR = brazilian,zh-Hant=chinese";

describe("voices", () => {
  it("a text without a voice has that of its language, else of what it is a kind of, else the default", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { voices: VOICES });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst&events=none");
    const cases = [
      [{ language_code: "de" }, "german"],
      [{ language_code: "DE_at" }, "german"],
      [{ language_code: "pt-br" }, "brazilian"],
      [{ language_code: "pt" }, "test-voice"],
      [{ language_code: "zh-hant-tw" }, "chinese"],
      [{ language_code: "de", voice_id: "own" }, "own"],
      [{}, "test-voice"],
    ] as const;
    for (const [options] of cases) client.send({ type: "speak", text: "Hi.", ...options });
    client.send({ type: "text", text: "Hallo.", language_code: "de" });
    client.send({ type: "end" });
    client.send({ type: "prepare", text: "Hallo.", language_code: "de", prepared_id: "p" });
    await client.next("prepared");
    client.send({ type: "play", prepared_id: "p" });
    await client.next("utterance.done", cases.length + 2);
    expect(client.eventsOf("utterance.started").map(({ voice_ids }) => voice_ids)).toEqual(
      [...cases.map(([, voice]) => voice), "german", "german"].map((voice) => [voice]),
    );
    const asked = upstream.requests.map(({ path }) => path.split("/")[3]);
    expect(asked.filter((voice) => voice === "german")).toHaveLength(4);
  });

  it.each(["de", "de=", "=voice", "d=voice", "de=a,DE=b", `de=${"v".repeat(129)}`])(
    "a gateway does not start with %s",
    async (voices) => {
      await using upstream = await startFakeUpstream();
      await expect(gatewayAt(upstream.url, { voices })).rejects.toMatchObject({
        code: "invalid_config",
        field: "voices",
      });
    },
  );
});
