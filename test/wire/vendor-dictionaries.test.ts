/** A dictionary made through the gateway, and what a vendor socket that names it says: over the embedded service. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startClient, VOICE } from "../service/client.ts";
import { charsOf, startVendorApp, type VendorApp, VendorClient } from "./vendor-rig.ts";

let service: Awaited<ReturnType<typeof startClient>>;
let app: VendorApp;
beforeAll(async () => {
  service = await startClient();
  app = await startVendorApp(service.service.url);
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
});

/** A locator of a dictionary with one alias. */
async function makeLocator(): Promise<{ pronunciation_dictionary_id: string; version_id: string }> {
  const rules = [{ type: "alias", string_to_replace: "SQL", alias: "sequel" }];
  const answer = await fetch(`${app.url}/v1/pronunciation-dictionaries/add-from-rules`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "x", rules }),
  });
  const made = (await answer.json()) as { id: string; version_id: string };
  return { pronunciation_dictionary_id: made.id, version_id: made.version_id };
}

it("pronunciation_dictionary_locators of a socket: the alias is said, times are for the client's text", async () => {
  const locators = [await makeLocator()];
  const path = `/v1/text-to-speech/${VOICE}/multi-stream-input?auto_mode=true&output_format=pcm_16000`;
  await using client = await VendorClient.connect(app, path);
  client.send({ text: " ", context_id: "a", pronunciation_dictionary_locators: locators });
  client.send({ text: "Ask SQL again. ", context_id: "a" });
  client.send({ context_id: "a", close_context: true });
  await client.final("a");
  expect(charsOf(client.heard)).toBe("Ask SQL again. ");
  const said = client.heard.flatMap((one) => one.normalizedAlignment?.chars ?? []).join("");
  expect(said.trim()).toBe("Ask sequel again.");
});
