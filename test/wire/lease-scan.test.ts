/** Every route of a gateway with keys: whatever is still open when a key is withdrawn or narrowed is ended. */
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import type { MountedRoute } from "../../src/server/routes.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { startCarrierEdge } from "../unit/telephony/carrier-edge.ts";

interface Asking {
  /** Default: GET where the route takes any. */
  readonly method?: string;
  /** Default: the pattern's, with `x` for what it leaves open. */
  readonly path?: string;
  readonly body?: object;
  /** First message of a socket. */
  readonly message?: string;
}

const SPEECH = { text: "Hello there.", model: "tts-1", input: "Hello there.", voice: "Tone A" };
const TWILIO_START = JSON.stringify({
  event: "start",
  sequenceNumber: "1",
  streamSid: `MZ${"a".repeat(32)}`,
  start: {
    streamSid: `MZ${"a".repeat(32)}`,
    callSid: `CA${"a".repeat(32)}`,
    accountSid: `AC${"0".repeat(32)}`,
    tracks: ["inbound"],
    customParameters: {},
    mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
  },
});

/**
 * Routes whose answer goes on, and how they are asked. All other ones have to answer at once, however they are asked here: a
 * route that streams is found by that, and belongs here.
 */
const GOES_ON: Readonly<Record<string, Asking>> = {
  "ws /live/:session": {},
  "ws /carrier/:name": { path: "/carrier/twilio", message: TWILIO_START },
  "ws /carrier": { message: TWILIO_START.replaceAll("a".repeat(32), "b".repeat(32)) },
  "ws /carrier/jambonz/tts": { path: "/carrier/jambonz/tts?voice=Tone%20A" },
  "ws /v1/text-to-speech/:voice/stream-input": {},
  "ws /v1/text-to-speech/:voice/multi-stream-input": {},
  "ws /v1/text-to-dialogue/stream-input": {},
  "ws /v1/text-to-dialogue/multi-stream-input": {},
  "get /live/:session/audio.ogg": {},
  "get /live/:session/audio.wav": {},
  "get /live/:session/audio.pcm": {},
  "get /live/:session/audio.ulaw": {},
  "get /live/:session/audio.mp3": {},
  "get /live/:session/captions": {},
  "get /live/:session/captions.vtt": {},
  "get /live/:session/captions.srt": {},
  "post /carrier/jambonz/tts": { body: { ...SPEECH, language: "en-US", type: "text" } },
  "post /v1/audio/speech": { body: SPEECH },
  "any /v1/*": { method: "POST", path: "/v1/text-to-speech/x/stream", body: SPEECH },
  "any /v2/*": { path: "/v2/voices" },
  "get /openapi.json": {},
};

/** What has become of one request. */
interface Opened {
  readonly name: string;
  isOver: boolean;
}

function nameOf({ method, pattern }: MountedRoute): string {
  return `${method} ${pattern}`;
}

/** What every gateway answers. */
async function allRoutes(): Promise<readonly MountedRoute[]> {
  await using edge = await startCarrierEdge();
  return edge.edge.routes;
}

/** Resolves when it is open, or was refused. */
async function open(route: MountedRoute, gateway: TestGateway, key: string): Promise<Opened> {
  const name = nameOf(route);
  const asking = GOES_ON[name] ?? {};
  const path = asking.path ?? route.pattern.replaceAll(/:\w+/g, "x").replace("*", "x");
  const opened: Opened = { name, isOver: false };
  const end = (): void => {
    opened.isOver = true;
  };
  const authorization = `Bearer ${key}`;
  if (route.method !== "ws") {
    const method = asking.method ?? verbOf(route.method);
    const body = asking.body ?? (method === "POST" ? {} : undefined);
    const answer = await fetch(gateway.url + path, {
      method,
      headers: { authorization, accept: "audio/wav", "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    answer.arrayBuffer().then(end, end);
    return opened;
  }
  const socket = new WebSocket(gateway.wsUrl + path, { headers: { authorization } });
  socket.on("error", () => undefined);
  socket.on("close", end);
  await new Promise((resolve) => socket.once("open", resolve).once("close", resolve));
  if (asking.message !== undefined) socket.send(asking.message);
  return opened;
}

function verbOf(method: Exclude<MountedRoute["method"], "ws">): string {
  if (method === "any") return "GET";
  return method === "del" ? "DELETE" : method.toUpperCase();
}

describe("whatever a caller has open", () => {
  it.each<readonly [how: string, key: object]>([
    ["withdrawn", { hash: `sha256:${"0".repeat(64)}` }],
    ["narrowed", { grants: { sessions: ["*"], allow: ["admin"] } }],
  ])("is ended when its key is %s, on every route", async (_how, key) => {
    using keys = new TestKeys();
    const speak = speaking();
    await using upstream = await startFakeUpstream((request, index) => {
      if (request.path === "/v1/voices") return speak(request, index);
      return { headers: { "content-type": "audio/pcm" }, body: [Buffer.alloc(3200), "stall"] };
    });
    await using gateway = await gatewayAt(upstream.url, { keysFile: keys.path });
    const routes = await allRoutes();
    const isSocket = ({ method }: MountedRoute): boolean => method === "ws";
    const ask = (route: MountedRoute): Promise<Opened> => open(route, gateway, keys.key);
    // The first one opens the session that others listen to.
    const sockets = await Promise.all(routes.filter(isSocket).map(ask));
    const requests = await Promise.all(routes.filter((route) => !isSocket(route)).map(ask));
    const opened = [...sockets, ...requests];
    const goingOn = (): string[] => opened.filter(({ isOver }) => !isOver).map(({ name }) => name);
    const expected = Object.keys(GOES_ON).sort();
    await until("only streams go on", () => goingOn().every((name) => expected.includes(name)));
    expect(goingOn().sort()).toEqual(expected);
    keys.write({ server: key });
    await until("all has ended", () => goingOn().length === 0).catch(() => undefined);
    expect(goingOn()).toEqual([]);
  });
});
