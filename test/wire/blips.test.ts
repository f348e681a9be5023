/** Listeners whose connections break while they hear: with the client that programs use, each has every byte once and in order. */
import { afterAll, expect, it } from "vitest";
import WebSocket from "ws";
import { connect, type WebSocketConstructor } from "../../src/client/index.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { TcpLink } from "../kit/tcp-link.ts";

const PATIENT_MS = 60_000;
const LISTENERS = 200;
/** Listeners of one link break together. */
const LINKS = 10;
const CUTS_A_LINK = 3;
const TEXT = "More of it.";

interface Heard {
  readonly frames: Buffer[];
  /** The timeline's place of each frame. */
  readonly atMs: number[];
  blips: number;
  /** Frames behind the last one. */
  sinceBlip: number;
  /** Audio that was missing behind each blip, ms; null: not known. */
  readonly gapsMs: (number | null)[];
  close(): Promise<unknown>;
}

async function listen(baseUrl: string): Promise<Heard> {
  const connection = await connect({
    baseUrl,
    session: "blips",
    settings: { role: "listener", format: "ulaw_8000" },
    WebSocket: WebSocket as unknown as WebSocketConstructor,
    reconnect: { firstDelayMs: 1, maxDelayMs: 100, maxTries: 100 },
  });
  const heard: Heard = {
    frames: [],
    atMs: [],
    blips: 0,
    sinceBlip: 0,
    gapsMs: [],
    close: () => connection.close(),
  };
  connection.onAudio((frame, { atMs }) => {
    heard.frames.push(Buffer.from(frame));
    heard.atMs.push(atMs);
    heard.sinceBlip += 1;
  });
  connection.on("reconnected", ({ gapMs }) => {
    heard.blips += 1;
    heard.sinceBlip = 0;
    heard.gapsMs.push(gapMs);
  });
  return heard;
}

const links: TcpLink[] = [];

afterAll(async () => {
  await Promise.all(links.map((link) => link[Symbol.asyncDispose]()));
});

it(`${LISTENERS} listeners whose connections break ${CUTS_A_LINK} times hear the same bytes as one whose connection stands`, {
  timeout: PATIENT_MS,
}, async () => {
  await using upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
  await using gateway = await gatewayAt(upstream.url);
  const { port } = new URL(gateway.url);
  for (let index = 0; index < LINKS; index += 1) links.push(await TcpLink.to(Number(port)));
  await using steady = await TestClient.connect(gateway, "/live/blips?format=ulaw_8000");
  const listeners = await Promise.all(
    Array.from({ length: LISTENERS }, (_, index) => listen(`http://127.0.0.1:${links[index % LINKS]?.port}`)),
  );
  for (let cut = 0; cut < CUTS_A_LINK; cut += 1) {
    for (const [at, link] of links.entries()) {
      // Speech goes on for as long as links break.
      steady.send({ type: "speak", text: TEXT });
      const own = listeners.filter((_, index) => index % LINKS === at);
      await until(
        "all of the link are there and hear",
        () => own.every(({ blips, sinceBlip }) => blips === cut && sinceBlip > 0),
        { deadlineMs: PATIENT_MS / 2 },
      );
      link.cut();
      link.heal();
    }
  }
  await steady.next("utterance.done", CUTS_A_LINK * LINKS);
  const { audio } = steady;
  await until(
    "all have heard all",
    () =>
      listeners.every(({ frames, blips }) => blips >= CUTS_A_LINK && frames.length >= steady.frames.length),
    { deadlineMs: PATIENT_MS / 2 },
  );
  const wholeOnes = listeners.filter(({ frames }) =>
    Buffer.concat(frames).subarray(0, audio.length).equals(audio),
  );
  expect(wholeOnes).toHaveLength(LISTENERS);
  for (const { atMs, blips, gapsMs } of listeners) {
    expect(blips).toBe(CUTS_A_LINK);
    expect(gapsMs).toEqual(gapsMs.map(() => 0));
    expect(atMs).toEqual(atMs.map((_, index) => (atMs[0] ?? 0) + index * 20));
  }
  await Promise.all(listeners.map((listener) => listener.close()));
});
