/** What becomes of a client of the captions that does not read: a response whose socket is full, scripted. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { describe, expect, it } from "vitest";
import { ANYBODY, type Caller } from "../../src/access/caller.ts";
import { ListenerCursor } from "../../src/delivery/listener-cursor.ts";
import { GatewayError } from "../../src/errors.ts";
import type { Event } from "../../src/protocol/events.ts";
import { routeCaptions } from "../../src/server/captions/captions.ts";
import { CaptionsListener } from "../../src/server/captions/captions-listener.ts";
import { ResponseWriter } from "../../src/server/players/response-writer.ts";
import type { Routes } from "../../src/server/routes.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { FakeResponse } from "../helpers/fake-response.ts";
import { logged } from "../helpers/logged.ts";
import { OPEN_DOOR, OPEN_TERMS } from "../helpers/open-door.ts";
import { createRig } from "../helpers/session-rig.ts";
import { Answering, VOICE } from "../unit/session/scripted-speech.ts";

function open() {
  const clock = new FakeClock();
  const socket = new FakeResponse();
  const seen = { drained: 0, closed: 0 };
  const body = new ResponseWriter({
    res: socket.res,
    clock,
    idleSeconds: 10,
    onDrained: () => {
      seen.drained += 1;
    },
    onClosed: () => {
      seen.closed += 1;
    },
    terms: OPEN_TERMS,
    onLost: () => undefined,
  });
  return { clock, socket, seen, body };
}

describe("a client that does not read", () => {
  it("has what waits counted, and gets it in order once it reads", () => {
    const { socket, seen, body } = open();
    body.write("a");
    body.open({});
    socket.room = 0;
    body.write("b");
    body.write("c");
    body.write("d");
    expect([socket.text, body.bufferedBytes]).toEqual(["ab", 3]);
    socket.drain();
    expect([socket.text, body.bufferedBytes, seen.drained]).toEqual(["abcd", 0, 1]);
  });

  it("is kept for as long as it may be idle, then cut off", () => {
    const { clock, socket, seen, body } = open();
    body.open({});
    socket.room = 0;
    body.write("a");
    clock.advance(9_000);
    expect([socket.resumes > 0, socket.state]).toEqual([true, "open"]);
    clock.advance(4_000);
    expect([socket.state, seen.closed, body.bufferedBytes]).toEqual(["closed", 1, 0]);
    body.write("b");
    body.cut();
    expect([socket.text, seen.closed]).toEqual(["a", 1]);
  });

  it("gets the close code, and no comment afterwards", () => {
    const { clock, socket, body } = open();
    const listener = new CaptionsListener(body, { clock });
    const cursor = new ListenerCursor({ listener, policy: "live", offsets: "utf16", maxOutboxBytes: 400 });
    body.open({});
    listener.notify({ type: "hello", seq: 0, at_ms: 0, epoch: "e" } as unknown as Event);
    clock.advance(15_000);
    expect(socket.text.endsWith("\n\n:\n\n")).toBe(true);
    socket.room = 0;
    const event: Event = { type: "words", seq: 7, at_ms: 1, utterance_id: "u", words: [], timing: "exact" };
    const words = logged(event);
    let sent = 0;
    while (!cursor.sendBatch([words], 0) && sent < 100) sent += 1;
    expect(sent).toBeLessThan(10);
    cursor.end(new GatewayError("slow_consumer", "Listener reads too slowly"));
    expect(socket.text).toContain(`id: e:7\nevent: words\ndata: ${JSON.stringify(event)}\n\n`);
    expect(
      socket.text.endsWith(
        'event: closed\ndata: {"type":"closed","code":"slow_consumer","close_code":4408}\n\n',
      ),
    ).toBe(true);
    const before = socket.text;
    clock.advance(60_000);
    expect(socket.text).toBe(before);
  });
});

/** A session that speaks, and `captions.vtt` of it for a client of the given room. */
function growing(maxOutboxBytes: number) {
  const rig = createRig();
  const speaker = rig.join("format=ulaw_8000&events=none");
  const answering = new Answering(rig, { msPerChar: 40 });
  type Handler = (res: HttpResponse, req: HttpRequest, caller: Caller) => void;
  const routes = new Map<string, Handler>();
  const app = {
    get: (path: string, _access: unknown, handler: Handler) => routes.set(path, handler),
    head: () => undefined,
  };
  routeCaptions(app as unknown as Routes, {
    sessions: rig.sessions,
    door: OPEN_DOOR,
    cluster: null,
    defaults: { leadMs: 200, maxLeadMs: 10_000 },
    idleSeconds: 120,
    maxOutboxBytes,
  });
  const request = { getParameter: () => "s", getQuery: () => "", getHeader: () => "" };
  return {
    session: rig.sessions.get("s"),
    say: (text: string) => {
      speaker.send({ type: "speak", text, voice_id: VOICE });
      answering.run(3000);
    },
    open: (room?: number): FakeResponse => {
      const response = new FakeResponse();
      if (room !== undefined) response.room = room;
      routes.get("/live/:session/captions.vtt")?.(response.res, request as unknown as HttpRequest, ANYBODY);
      return response;
    },
  };
}

describe("a growing file whose client does not read", () => {
  const LINE = "Twenty-two characters!";

  it("is cut once more waits than max-outbox-bytes, and its place is free; one that is read goes on", () => {
    const { session, say, open } = growing(200);
    const stuck = open(0);
    const read = open();
    expect([stuck.status, session.connectionCount]).toEqual(["200 OK", 3]);
    say(LINE);
    say(LINE);
    // The head and two cues of some fifty bytes are within the bound.
    expect([stuck.state, session.connectionCount]).toEqual(["open", 3]);
    say(LINE);
    say(LINE);
    expect([stuck.state, session.connectionCount]).toEqual(["closed", 2]);
    expect(stuck.text).toBe("WEBVTT\n\n");
    say(LINE);
    expect([read.state, read.text.split(LINE).length - 1]).toEqual(["open", 5]);
  });

  it("is cut at once where more than that is remembered, and not touched any further", () => {
    const { session, say, open } = growing(200);
    const first = open();
    for (let count = 0; count < 6; count += 1) say(LINE);
    const late = open(0);
    expect([late.state, session.connectionCount]).toEqual(["closed", 2]);
    // Writing to it would throw.
    say(LINE);
    expect([first.state, late.state]).toEqual(["open", "closed"]);
  });
});
