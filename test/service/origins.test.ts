/** Which hosts and web pages the service answers, standing alone: src/service/http/origins.ts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, startClient, VOICE } from "./client.ts";

const SPEECH = `/v1/text-to-speech/${VOICE}`;
const LISTED = "https://app.example.com";
let client: Client;

beforeAll(async () => {
  client = await startClient({ allowedHosts: "voice.example.com", allowedOrigins: LISTED });
});
afterAll(() => client[Symbol.asyncDispose]());

describe("a request to the service alone", () => {
  it.each([
    ["a name that was bound to this address", { host: "evil.example" }, 421, "host_not_allowed"],
    ["a page of another origin", { origin: "https://evil.example" }, 403, "origin_not_allowed"],
    ["a page without an origin", { origin: "null" }, 403, "origin_not_allowed"],
    ["a cross-site write without Origin", { "sec-fetch-site": "cross-site" }, 403, "origin_not_allowed"],
  ])(
    "of %s is refused, and no page may read that",
    async (_name, headers: Record<string, string>, status, code) => {
      for (const path of [SPEECH, "/v1/sound-generation", "/nowhere"]) {
        const answer = await client.post(path, { text: "Rain." }, headers);
        expect(answer.status).toBe(status);
        expect(JSON.parse(answer.body.toString()).detail).toMatchObject({
          type: "authorization_error",
          code,
        });
        expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
      }
      expect(JSON.parse((await client.get("/v1/history")).body.toString()).history).toEqual([]);
    },
  );

  it.each([{}, { host: "localhost:1" }, { host: "voice.example.com" }])(
    "with %j is answered",
    async (headers) => {
      const answer = await client.get("/v1/voices", headers as Record<string, string>);
      expect(answer.status).toBe(200);
      expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
      expect(answer.headers.vary).toBe("origin");
    },
  );

  it.each([LISTED, "http://localhost:3000"])(
    "of a page of %s lets that page read the answer",
    async (origin) => {
      const answers = [
        await client.get("/v1/voices", { origin }),
        await client.get("/nowhere", { origin }),
        await client.post("/v1/sound-generation", { text: "rain", duration_seconds: 0.5 }, { origin }),
      ];
      expect(answers.map(({ status }) => status)).toEqual([200, 404, 200]);
      for (const { headers } of answers) {
        expect(headers).toMatchObject({
          "access-control-allow-origin": origin,
          "access-control-expose-headers": expect.stringContaining("character-cost"),
          vary: "origin",
        });
      }
    },
  );

  it("is answered before it is made: a preflight", async () => {
    const ask = (origin: string) =>
      fetch(client.service.url + SPEECH, { method: "OPTIONS", headers: { origin } });
    const allowed = await ask(LISTED);
    expect([allowed.status, allowed.headers.get("access-control-allow-origin")]).toEqual([200, LISTED]);
    expect(allowed.headers.get("access-control-allow-methods")).toContain("DELETE");
    const refused = await ask("https://evil.example");
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([403, null]);
  });
});
