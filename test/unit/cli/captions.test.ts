/** `voicewire captions` and its services, against peers on the loopback that speak their sides and fail as scripted. */
import { describe, expect, it } from "vitest";
import { captions } from "../../../src/cli/captions/captions.ts";
import { planCaptions } from "../../../src/cli/captions/captions-plan.ts";
import { CaptionQueue } from "../../../src/cli/captions/captions-queue.ts";
import { type CaptionTarget, TargetError } from "../../../src/cli/captions/captions-target.ts";
import { YoutubeTarget } from "../../../src/cli/captions/captions-youtube.ts";
import { ZoomTarget } from "../../../src/cli/captions/captions-zoom.ts";
import { planListen } from "../../../src/cli/listen/listen-plan.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../../helpers/start-gateway.ts";
import { readStrictVtt } from "../../helpers/strict-vtt.ts";
import { until } from "../../helpers/until.ts";
import { Peer, queueOf, shown } from "./captions-peers.ts";
import { memoryIo } from "./memory-io.ts";

describe("Zoom", () => {
  it("asks for the number, repeats it where a POST failed, and counts on", async () => {
    const script: ({ status: number; body?: string } | "cut")[] = [
      { status: 200, body: "41\n" },
      { status: 503 },
      "cut",
      { status: 408 },
      { status: 200 },
      { status: 200 },
    ];
    await using peer = new Peer(() => script.shift() ?? { status: 500 });
    const { queue, reported } = queueOf(
      new ZoomTarget(await peer.listen("/closedcaption?id=1&signature=se%2Bcret"), {
        language: "en-US",
        mode: "pop-on",
      }),
    );
    queue.push(shown(["One,", "two."]));
    queue.push(shown(["Three."], "Ana"));
    await until("both", () => queue.sent === 2, { deadlineMs: 15_000 });
    await queue.close();
    expect(peer.taken.map(({ method, url }) => [method, url.pathname, url.searchParams.get("seq")])).toEqual([
      ["GET", "/closedcaption/seq", null],
      ["POST", "/closedcaption", "42"],
      ["POST", "/closedcaption", "42"],
      ["POST", "/closedcaption", "42"],
      ["POST", "/closedcaption", "42"],
      ["POST", "/closedcaption", "43"],
    ]);
    expect(peer.taken[5]?.url.search).toBe("?id=1&signature=se%2Bcret&seq=43&lang=en-US");
    expect(peer.taken.slice(4).map(({ body }) => body)).toEqual(["One,\ntwo.\n", "Ana: Three.\n"]);
    // Failures follow one another within a minute: one word about them, without the address.
    expect(reported).toEqual(["Zoom answered 503: trying again"]);
  });

  it("drops a caption that is refused, and does not use its number up", async () => {
    const script = [{ status: 200, body: "0" }, { status: 400 }, { status: 200 }];
    await using peer = new Peer(() => script.shift() ?? { status: 500 });
    const { queue, reported } = queueOf(
      new ZoomTarget(await peer.listen("/cc?signature=secret"), { language: "de-DE", mode: "pop-on" }),
    );
    queue.push(shown(["One."]));
    queue.push(shown(["Two."]));
    await until("the second", () => queue.sent === 1);
    await queue.close();
    expect(peer.taken.map(({ url, body }) => [url.searchParams.get("seq"), body])).toEqual([
      [null, ""],
      ["1", "One.\n"],
      ["1", "Two.\n"],
    ]);
    expect(reported).toEqual(["Zoom answered 400: a caption was dropped"]);
  });
});

describe("YouTube", () => {
  it("sends the time of each caption by YouTube's own clock, and its number once", async () => {
    const script = [{ status: 200, body: "2026-01-02T03:04:08.000\n" }, { status: 500 }, { status: 200 }];
    await using peer = new Peer(() => script.shift() ?? { status: 400 });
    const nowMs = Date.UTC(2026, 0, 2, 3, 4, 6);
    const { queue } = queueOf(
      new YoutubeTarget(await peer.listen("/closedcaption?cid=secret"), {
        nowMs: () => nowMs,
        mode: "pop-on",
      }),
    );
    queue.push(shown(["One,", "two."]));
    queue.push(shown(["Three."]));
    await until("both", () => queue.sent === 2);
    await queue.close();
    expect(peer.taken.map(({ url, body }) => [url.searchParams.get("seq"), body])).toEqual([
      ["1", "2026-01-02T03:04:05.678\nOne,<br>two.\n"],
      ["2", "2026-01-02T03:04:07.678\nThree.\n"],
      ["2", "2026-01-02T03:04:07.678\nThree.\n"],
    ]);
  });
});

describe("CaptionQueue", () => {
  it("drops the oldest where a service hangs, says so once a minute, and ends with what is under way", async () => {
    const clock = new FakeClock();
    const reported: string[] = [];
    const warn = (line: string) => void reported.push(line);
    const hanging: CaptionTarget = {
      name: "X",
      send: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new TargetError("gone", true)));
        }),
      close: () => void reported.push("closed"),
    };
    const queue = new CaptionQueue({ target: hanging, clock, warn, random: () => 0 });
    for (let index = 0; index < 40; index += 1) queue.push(shown([`${index}`]));
    expect(reported).toEqual(["X is too slow: its oldest captions were dropped"]);
    clock.advance(60_000);
    queue.push(shown(["last"]));
    expect(reported[1]).toBe(
      "X is too slow: its oldest captions were dropped (7 lost since the last word about it)",
    );
    await queue.close();
    expect(reported.at(-1)).toBe("closed");
  });
});

describe("voicewire captions", () => {
  it("puts a session's cues into a file and to a service at their time, and prints no address", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using peer = new Peer(({ method }) => ({ status: 200, body: method === "GET" ? "7" : "" }));
    const zoom = (await peer.listen("/cc?signature=se-cret")).href;
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&events=none");
    await client.next("hello");
    const io = memoryIo(["captions"], { env: { VOICEWIRE_ZOOM_URL: zoom } });
    const running = captions.run(io, ["s", "--url", gateway.url, "--vtt", "-", "--mode", "roll-up"]);
    await until("the listener", () => gateway.counters.connectionsOpened === 2);
    client.send({ type: "speak", text: "Hello there, general listener. How are you today?", voice_id: "v" });
    await client.next("utterance.done");
    await until("both lines", () => peer.taken.length >= 3);
    io.signal("SIGINT");
    expect(await running).toBe(130);
    expect(io.signalListeners).toBe(0);
    expect(peer.taken.slice(1).map(({ body }) => body)).toEqual([
      "Hello there, general listener.\n",
      "How are you today?\n",
    ]);
    const cues = readStrictVtt(io.stdout.text);
    expect(cues.map((cue) => cue.lines)).toEqual([
      ["Hello there, general listener."],
      ["Hello there, general listener.", "How are you today?"],
    ]);
    expect(io.stdout.text + io.stderr.text).not.toContain("se-cret");
  });

  it("is no matter of listen's switch of the same name as the gateway's setting", () => {
    expect(planListen(memoryIo([]), ["s", "--no-captions"]).hasCaptions).toBe(false);
    expect(planListen(memoryIo([]), ["s", "--captions"]).hasCaptions).toBe(true);
  });

  it("refuses what can't be done, without a secret in the message", () => {
    const io = memoryIo([]);
    expect(() => planCaptions(io, ["s"])).toThrow(/Nowhere to put captions/);
    expect(() => planCaptions(io, ["s", "--zoom", "ftp://se-cret"])).toThrow(
      /^Flag --zoom: expected an address that begins with http:\/\/ or https:\/\/$/,
    );
    const { obs, profile } = planCaptions(io, ["s", "--obs", "ws://:pass%20word@127.0.0.1:4455"]);
    expect([obs?.address.href, obs?.password, profile]).toEqual([
      "ws://127.0.0.1:4455/",
      "pass word",
      "broadcast",
    ]);
  });
});
