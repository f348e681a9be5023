/** What becomes of a client of the captions that does not read: a response whose socket is full, scripted. */
import type { HttpResponse } from "uWebSockets.js";
import { describe, expect, it } from "vitest";
import { CaptionsBody } from "../../src/edge/captions-body.ts";
import { EventStreamSink } from "../../src/edge/captions-events.ts";
import { GatewayError } from "../../src/errors.ts";
import { Outbox } from "../../src/fanout/outbox.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

class FullSocket {
  text = "";
  hasRoom = true;
  resumed = 0;
  end = "";
  isCut = false;
  #writable: () => void = () => undefined;

  readonly res = {
    onAborted: () => undefined,
    onWritable: (handler: () => void) => {
      this.#writable = handler;
    },
    cork: (write: () => void) => write(),
    writeStatus: () => undefined,
    writeHeader: () => undefined,
    write: (bytes: Uint8Array) => {
      this.text += new TextDecoder().decode(bytes);
      return this.hasRoom;
    },
    end: (bytes: Uint8Array) => {
      this.end = new TextDecoder().decode(bytes);
    },
    close: () => {
      this.isCut = true;
    },
    resume: () => {
      this.resumed += 1;
    },
  } as unknown as HttpResponse;

  drain(): void {
    this.hasRoom = true;
    this.#writable();
  }
}

function open() {
  const clock = new FakeClock();
  const socket = new FullSocket();
  const seen = { drained: 0, closed: 0 };
  const body = new CaptionsBody({
    res: socket.res,
    clock,
    idleSeconds: 10,
    onDrained: () => {
      seen.drained += 1;
    },
    onClosed: () => {
      seen.closed += 1;
    },
  });
  return { clock, socket, seen, body };
}

describe("a client that does not read", () => {
  it("has what waits counted, and gets it in order once it reads", () => {
    const { socket, seen, body } = open();
    body.write("a");
    body.open({});
    socket.hasRoom = false;
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
    socket.hasRoom = false;
    body.write("a");
    clock.advance(9_000);
    expect([socket.resumed > 0, socket.isCut]).toEqual([true, false]);
    clock.advance(4_000);
    expect([socket.isCut, seen.closed, body.bufferedBytes]).toEqual([true, 1, 0]);
    body.write("b");
    body.cut();
    expect([socket.text, seen.closed]).toEqual(["a", 1]);
  });

  it("is told the code where it is closed, and no comment comes afterwards", () => {
    const { clock, socket, body } = open();
    const sink = new EventStreamSink(body, { epoch: "e", clock });
    const outbox = new Outbox({ sink, policy: "live", maxOutboxBytes: 400 });
    body.open({});
    clock.advance(15_000);
    expect(socket.text.endsWith("\n\n:\n\n")).toBe(true);
    socket.hasRoom = false;
    const bytes = new TextEncoder().encode('{"type":"words","seq":7,"at_ms":1}');
    let sent = 0;
    while (!outbox.sendBatch([{ bytes, isFrame: false }], 0) && sent < 100) sent += 1;
    expect(sent).toBeLessThan(10);
    outbox.end(new GatewayError("slow_consumer", "Listener reads too slowly"));
    expect(socket.text).toContain('id: e:7\nevent: words\ndata: {"type":"words","seq":7,"at_ms":1}\n\n');
    expect(
      socket.end.endsWith(
        'event: closed\ndata: {"type":"closed","code":"slow_consumer","close_code":4408}\n\n',
      ),
    ).toBe(true);
    const before = socket.text;
    clock.advance(60_000);
    expect(socket.text).toBe(before);
  });
});
