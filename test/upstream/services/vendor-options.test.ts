/** Options that a client has for the service that speaks: what is sent, what is refused, and what is named as ignored. */
import { afterEach, describe, expect, it } from "vitest";
import type WebSocket from "ws";
import { readUpstreamsFile } from "../../../src/upstream/services/upstreams-file.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { TestKeys, tokenFor } from "../../helpers/key-file.ts";
import { gatewayAt, TestClient } from "../../helpers/start-gateway.ts";
import { CARTESIA_KEY, CARTESIA_VOICE, cartesia } from "../../kit/vendors/cartesia.ts";
import { TEXT } from "./rig.ts";

const CARTESIA = `cartesia:${CARTESIA_VOICE}`;
const FIRST = "tone-a";
const closing: AsyncDisposable[] = [];

afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

async function rig(settings: Parameters<typeof gatewayAt>[1] = {}) {
  const first = await startFakeUpstream();
  const vendor = await startFakeUpstream(cartesia());
  const file = {
    upstreams: [{ name: "cartesia", url: vendor.url, "key-env": "CARTESIA_API_KEY" }],
    voices: { house: [CARTESIA, FIRST] },
  };
  const { services, voices } = readUpstreamsFile(JSON.stringify(file), {
    env: () => CARTESIA_KEY,
    file: () => "",
  });
  const gateway = await gatewayAt(first.url, settings, { services, voices });
  closing.push(first, vendor, gateway);
  const posted = (upstream: typeof first) =>
    upstream.requests.flatMap(({ method, json }) =>
      method === "POST" ? [json as Record<string, unknown>] : [],
    );
  return { gateway, asked: { first: () => posted(first), cartesia: () => posted(vendor) } };
}

async function join(gateway: { wsUrl: string }, options: WebSocket.ClientOptions = {}): Promise<TestClient> {
  const client = await TestClient.connect(gateway, "/live/s?format=pcm_24000&pace=burst", options);
  closing.push(client);
  return client;
}

const ignored = (client: TestClient) =>
  client.eventsOf("warning").map(({ code, fields, utterance_id }) => ({ code, fields, utterance_id }));

describe("vendor_options", () => {
  it("go into the body of the upstream that speaks, beside what is sent in any case; others are named", async () => {
    const { gateway, asked } = await rig();
    const client = await join(gateway);
    const vendor_options = {
      cartesia: { generation_config: { emotion: "calm", volume: 1.2 } },
      elevenlabs: { use_pvc_as_ivc: true },
      hume: { description: "whispers" },
    };
    const voice_settings = { speed: 1.1 };
    client.send({
      type: "speak",
      text: TEXT,
      voice_id: CARTESIA,
      voice_settings,
      vendor_options,
      utterance_id: "c",
    });
    await client.next("utterance.done");
    expect(asked.cartesia()).toMatchObject([
      {
        transcript: TEXT,
        generation_config: { speed: 1.1, emotion: "calm", volume: 1.2 },
      },
    ]);
    const { cartesia: _own, ...rest } = vendor_options;
    client.send({ type: "speak", text: TEXT, voice_id: FIRST, vendor_options: rest, utterance_id: "f" });
    await client.next("utterance.done", 2);
    expect(asked.first()).toMatchObject([{ text: TEXT, use_pvc_as_ivc: true }]);
    expect(JSON.stringify(asked.first())).not.toContain("whispers");
    expect(ignored(client)).toEqual([
      {
        code: "settings_ignored",
        utterance_id: "c",
        fields: ["vendor_options.elevenlabs", "vendor_options.hume"],
      },
      { code: "settings_ignored", utterance_id: "f", fields: ["vendor_options.hume"] },
    ]);
  });

  it("are of texts that come in tokens and of dialogues, too", async () => {
    const { gateway, asked } = await rig();
    const client = await join(gateway);
    const vendor_options = { elevenlabs: { extra: 1 }, cartesia: { generation_config: { volume: 2 } } };
    client.send({ type: "text", text: TEXT, voice_id: FIRST, vendor_options });
    client.send({ type: "end" });
    await client.next("utterance.done");
    const inputs = [
      { text: "One.", voice_id: CARTESIA },
      { text: "Two.", voice_id: FIRST },
    ];
    client.send({ type: "dialogue", inputs, vendor_options });
    await client.next("utterance.done", 2);
    expect(asked.first()).toMatchObject([{ extra: 1 }, { text: "Two.", extra: 1 }]);
    expect(asked.cartesia()).toMatchObject([{ transcript: "One.", generation_config: { volume: 2 } }]);
  });

  it("for another upstream of a voice of one's own are no mistake", async () => {
    const { gateway, asked } = await rig();
    const client = await join(gateway);
    const vendor_options = {
      elevenlabs: { extra: 1 },
      cartesia: { generation_config: { volume: 2 } },
      nobody: {},
    };
    client.send({ type: "speak", text: TEXT, voice_id: "house", vendor_options });
    await client.next("utterance.done");
    expect(asked.cartesia()).toMatchObject([{ generation_config: { volume: 2 } }]);
    expect(ignored(client)).toMatchObject([{ fields: ["vendor_options.nobody"] }]);
  });

  it.each([
    ["a text", { cartesia: { transcript: "Other words." } }, "vendor_options.cartesia.transcript"],
    ["a voice", { elevenlabs: { voiceId: "x" } }, "vendor_options.elevenlabs.voiceId"],
    ["a format", { acme: { "output-format": "x" } }, "vendor_options.acme.output-format"],
    ["a model", { cartesia: { model_id: "x" } }, "vendor_options.cartesia.model_id"],
    ["more than 4096 characters", { cartesia: { a: "x".repeat(4100) } }, "vendor_options"],
    ["too deep a nest", { cartesia: { a: { b: { c: { d: { e: {} } } } } } }, "vendor_options.cartesia"],
    ["no object", { cartesia: 1 }, "vendor_options.cartesia"],
    ["nine upstreams", Object.fromEntries(Array.from("abcdefghi", (name) => [name, {}])), "vendor_options"],
  ])("with %s are refused at once, with the field", async (_, vendor_options, field) => {
    const { gateway, asked } = await rig();
    const client = await join(gateway);
    client.send({ type: "speak", text: TEXT, voice_id: CARTESIA, vendor_options });
    expect(await client.next("error")).toMatchObject({ code: "invalid_field", field });
    expect([...asked.cartesia(), ...asked.first()]).toEqual([]);
  });

  it("that change what is sent in any case fail the utterance, with the field", async () => {
    const { gateway, asked } = await rig();
    const client = await join(gateway);
    const vendor_options = { cartesia: { generation_config: { speed: 2 } } };
    const voice_settings = { speed: 1.1 };
    client.send({ type: "speak", text: TEXT, voice_id: CARTESIA, voice_settings, vendor_options });
    expect(await client.next("utterance.done")).toMatchObject({
      outcome: "failed",
      error: { code: "upstream_invalid", field: "vendor_options.cartesia.generation_config.speed" },
    });
    client.send({
      type: "speak",
      text: TEXT,
      voice_id: FIRST,
      seed: 3,
      vendor_options: { elevenlabs: { seed: 4 } },
    });
    expect(await client.next("utterance.done", 2)).toMatchObject({
      outcome: "failed",
      error: { code: "upstream_invalid", field: "vendor_options.elevenlabs.seed" },
    });
    expect([...asked.cartesia(), ...asked.first()]).toEqual([]);
  });

  it("make another phrase for the phrase cache, in any order", async () => {
    const { gateway, asked } = await rig({ phraseCacheMb: 4 });
    const client = await join(gateway);
    const say = async (options: object, count: number) => {
      client.send({
        type: "speak",
        text: TEXT,
        voice_id: CARTESIA,
        vendor_options: { cartesia: { generation_config: options } },
      });
      await client.next("utterance.done", count);
      return asked.cartesia().length;
    };
    expect(await say({ a: 1, b: { c: 1, d: 2 } }, 1)).toBe(1);
    expect(await say({ b: { d: 2, c: 1 }, a: 1 }, 2)).toBe(1);
    expect(await say({ a: 1, b: { c: 1, d: 3 } }, 3)).toBe(2);
  });

  it("are refused to who may have some voices or models only", async () => {
    using keys = new TestKeys();
    const { gateway } = await rig({ keysFile: keys.path });
    const token = tokenFor({
      sessions: ["*"],
      allow: ["open", "speak", "listen"],
      models: ["eleven_flash_v2_5"],
    });
    const client = await join(gateway, { headers: { authorization: `Bearer ${token}` } });
    client.send({
      type: "speak",
      text: TEXT,
      voice_id: FIRST,
      model_id: "eleven_flash_v2_5",
      vendor_options: { elevenlabs: { extra: 1 } },
    });
    expect(await client.next("error")).toMatchObject({ code: "forbidden" });
  });
});
