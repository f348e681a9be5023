/** The vendor's own client against a gateway with keys: with a key of the gateway, and with a token for one use. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { type Client, startClient, VOICE } from "./client.ts";
import { bytesOf, errorOf, heardSeconds, sdkFor } from "./sdk-client.ts";

const keys = new TestKeys();
let http: Client;
let gateway: TestGateway;

beforeAll(async () => {
  http = await startClient({ key: "service-key" });
  gateway = await gatewayAt(http.service.url, { keysFile: keys.path }, { upstreamKey: "service-key" });
});

afterAll(async () => {
  await gateway?.close();
  await http?.[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
});

describe("the vendor's client", () => {
  it("speaks and lists voices with a key of the gateway", async () => {
    const sdk = sdkFor(gateway.url, keys.key);
    expect((await sdk.voices.getAll()).voices.length).toBeGreaterThan(0);
    const audio = await bytesOf(
      await sdk.textToSpeech.convert(VOICE, { text: "Hello there.", outputFormat: "pcm_16000" }),
    );
    expect(heardSeconds(audio, "pcm_16000")).toBeGreaterThan(0.2);
  });

  it("is refused by status without one, and with one that does not allow it", async () => {
    expect((await errorOf(sdkFor(gateway.url, "wrong").voices.getAll())).statusCode).toBe(401);
    const listener = tokenFor({ sessions: ["*"], allow: ["listen"] });
    expect((await errorOf(sdkFor(gateway.url, listener).voices.getAll())).statusCode).toBe(403);
    expect((await errorOf(sdkFor(gateway.url, keys.key).history.list())).statusCode).toBe(403);
  });

  it("asks for a single-use token, which opens one socket", async () => {
    const { token } = await sdkFor(gateway.url, keys.key).tokens.singleUse.create("tts_websocket");
    const path = `/v1/text-to-speech/${VOICE}/stream-input?output_format=pcm_16000&single_use_token=${token}`;
    const socket = new WebSocket(`${gateway.wsUrl}${path}`);
    const pieces: Buffer[] = [];
    socket.on("message", (data: Buffer) => {
      const { audio } = JSON.parse(data.toString()) as { audio?: string | null };
      pieces.push(Buffer.from(audio ?? "", "base64"));
    });
    await once(socket, "open");
    for (const text of [" ", "Hello there. ", ""]) socket.send(JSON.stringify({ text }));
    const [code] = (await once(socket, "close")) as [number];
    expect(code).toBe(1000);
    expect(heardSeconds(Buffer.concat(pieces), "pcm_16000")).toBeGreaterThan(0.2);
    const second = new WebSocket(`${gateway.wsUrl}${path}`);
    second.on("error", () => undefined);
    const [, answer] = (await once(second, "unexpected-response")) as [unknown, { statusCode: number }];
    expect(answer.statusCode).toBe(401);
  });
});
