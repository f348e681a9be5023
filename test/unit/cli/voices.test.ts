import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { fetchOffered, fetchVoices, findVoice, renderVoices } from "../../../src/cli/say/voices.ts";

const VOICES = [
  { voice_id: "v1", name: "Anna", labels: { language: "en" } },
  { voice_id: "v2", name: "Annika", labels: {} },
  { voice_id: "Bert", name: "Zed", labels: { gender: "male" } },
];

const LIST = { voices: VOICES, unlisted: [] };

async function withServer(
  answer: { status: number; body: string },
  use: (baseUrl: string, headers: () => string | undefined) => Promise<void>,
  path = "/v1/voices",
): Promise<void> {
  let key: string | undefined;
  const server = createServer((request, response) => {
    key = request.headers["xi-api-key"]?.toString();
    response.writeHead(request.url === path ? answer.status : 418).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => key);
  } finally {
    server.close();
  }
}

describe("findVoice()", () => {
  test("takes an id, a name in any case, and the beginning of one name only", () => {
    expect(findVoice(LIST, "v2").name).toBe("Annika");
    expect(findVoice(LIST, "anna").voice_id).toBe("v1");
    expect(findVoice(LIST, "ze").voice_id).toBe("Bert");
    expect(findVoice(LIST, "cartesia:a0e9").voice_id).toBe("cartesia:a0e9");
    expect(findVoice(LIST, "Bert").name).toBe("Zed");
  });

  test("says which names it could be, or which was meant", () => {
    expect(() => findVoice(LIST, "ann")).toThrow("it could be Anna, Annika");
    expect(() => findVoice(LIST, "Anan")).toThrow('did you mean "Anna"?');
    expect(() => findVoice(LIST, "nobody")).toThrow(
      "not one of the 3 voices; see `voicewire say --list-voices`",
    );
  });
});

describe("findVoice() of voices of models", () => {
  const voices = [0, 1].map((speaker) => {
    return { voice_id: `amy-low.${speaker}`, name: `${speaker} (amy-low)`, labels: {} };
  });

  test("suggests an id, which is more than the name", () => {
    expect(() => findVoice({ voices, unlisted: [] }, "amy-lwo.1")).toThrow('did you mean "amy-low.1"?');
    expect(() => findVoice({ voices, unlisted: [] }, "amy-low")).toThrow('did you mean "amy-low.0"?');
  });
});

describe("findVoice() where a list is missing", () => {
  const unlisted = [{ upstream: "kokoro", code: "upstream_unreachable", message: "Nobody is there" }];

  test("says whose is; what is listed is found", () => {
    expect(findVoice({ voices: VOICES, unlisted }, "Anna").voice_id).toBe("v1");
    const found = () => findVoice({ voices: VOICES, unlisted }, "Anan");
    expect(found).toThrow('did you mean "Anna"?');
    expect(found).toThrow("; voices that begin with kokoro: can't be listed: Nobody is there");
    expect(found).toThrow(expect.objectContaining({ code: "unknown_voice", field: "voice" }));
  });

  test("without those of the first upstream it is that one's error", () => {
    const first = { upstream: null, code: "upstream_unauthorized", message: "It answered 401" };
    expect(() => findVoice({ voices: [], unlisted: [...unlisted, first] }, "Rachel")).toThrow(
      expect.objectContaining({
        code: "upstream_unauthorized",
        message: `Voice "Rachel": voices of the first upstream can't be listed: It answered 401`,
      }),
    );
  });
});

describe("fetchOffered()", () => {
  test("reads a gateway's own list: voices of one's own, and who is missing", async () => {
    const anna = {
      voice_id: "anna",
      name: "anna",
      labels: {},
      upstream: null,
      spoken_by: ["kokoro:a", "v1"],
    };
    const missing = { upstream: null, code: "upstream_failed", message: "It answered 500" };
    const body = JSON.stringify({ voices: [anna], unlisted: [missing, { upstream: 3 }, null] });
    await withServer(
      { status: 200, body },
      async (baseUrl) => {
        const list = await fetchOffered({ baseUrl });
        expect(list.voices).toEqual([
          { voice_id: "anna", name: "anna", labels: {}, spokenBy: ["kokoro:a", "v1"] },
        ]);
        expect(list.unlisted).toEqual([missing]);
        expect(renderVoices(list.voices)).toBe("anna  anna  kokoro:a > v1\n");
      },
      "/voices",
    );
  });
});

describe("fetchVoices()", () => {
  test("asks with the key and reads names, ids and labels", async () => {
    const body = JSON.stringify({ voices: [...VOICES, { no: "id" }, { voice_id: "bare" }] });
    await withServer({ status: 200, body }, async (baseUrl, key) => {
      const voices = await fetchVoices({ baseUrl: `${baseUrl}/`, key: "k" });
      expect(voices).toEqual([...VOICES, { voice_id: "bare", name: "bare", labels: {} }]);
      expect(key()).toBe("k");
    });
  });

  test.each([
    [401, "upstream_unauthorized", "ELEVENLABS_API_KEY"],
    [403, "upstream_forbidden", "permission"],
    [404, "upstream_not_found", "the part before /v1"],
    [500, "upstream_failed", "status 500, expected 200"],
  ])("explains a %i", async (status, code, advice) => {
    await withServer({ status, body: "{}" }, async (baseUrl) => {
      await expect(fetchVoices({ baseUrl })).rejects.toMatchObject({
        code,
        message: expect.stringContaining(advice),
      });
    });
  });

  test("says what is the matter where nothing listens and where something else answers", async () => {
    await expect(fetchVoices({ baseUrl: "http://127.0.0.1:1" })).rejects.toThrow(
      /127\.0\.0\.1:1.*ECONNREFUSED|bad port/,
    );
    await withServer({ status: 200, body: "<html>" }, async (baseUrl) => {
      await expect(fetchVoices({ baseUrl })).rejects.toMatchObject({ code: "upstream_protocol" });
    });
  });
});

test("renderVoices() lines names, ids and labels up", () => {
  expect(renderVoices(VOICES)).toBe("Anna    v1    en\nAnnika  v2\nZed     Bert  male\n");
});
