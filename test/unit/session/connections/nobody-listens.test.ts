/** Speech that nobody would hear waits: it is not asked for, not read and not lost. */
import { describe, expect, it } from "vitest";
import { countingUlaw, createRig, evenAlignment, type FakeRequest } from "../../../helpers/session-rig.ts";

type Rig = ReturnType<typeof createRig>;

function run(rig: Rig, ms: number): void {
  for (let passed = 0; passed < ms; passed += 10) rig.clock.advance(10);
}

function firstRequest(rig: Rig): FakeRequest {
  const [request] = rig.requests;
  if (request === undefined) throw new Error("No request was opened");
  return request;
}

/** An upstream that gives 100 ms at a time for as long as it is read. */
function giveWhileRead(request: FakeRequest, fromMs: number, toMs: number): number {
  let atMs = fromMs;
  for (; atMs < toMs && !request.isPaused; atMs += 100) {
    request.chunk(countingUlaw(100, atMs), { alignment: evenAlignment("a", 100, atMs) });
  }
  return atMs;
}

describe("a speaker alone", () => {
  it("is warned, and nothing is asked for until a listener comes", () => {
    const rig = createRig({ graceMs: 60_000 });
    const speaker = rig.join("role=speaker");
    expect(speaker.listener.eventsOf("warning")).toMatchObject([{ code: "nobody_listens" }]);
    speaker.send({ type: "speak", text: "Hello", voice_id: "v" });
    speaker.send({ type: "text", text: "More of it. And", voice_id: "v", utterance_id: "t" });
    speaker.send({ type: "flush", utterance_id: "t" });
    run(rig, 10_000);
    expect(rig.requests).toEqual([]);
    expect(speaker.listener.eventsOf("utterance.started")).toEqual([]);
    const client = rig.join("role=listener&format=ulaw_8000");
    expect(client.listener.eventsOf("warning")).toEqual([]);
    expect(rig.requests).toHaveLength(1);
    const request = firstRequest(rig);
    request.head();
    request.chunk(countingUlaw(400));
    request.handlers.end();
    run(rig, 1000);
    expect(Buffer.concat(client.listener.frames).equals(countingUlaw(400))).toBe(true);
    expect(speaker.listener.eventsOf("utterance.done")).toHaveLength(1);
    expect(rig.requests).toHaveLength(2);
  });

  it.each(["role=both&format=none", "role=speaker&format=ulaw_8000", "role=both&format=ulaw_8000"])(
    "with %s it follows its own speech: no warning, and it is spoken",
    (query) => {
      const rig = createRig();
      const speaker = rig.join(query);
      speaker.send({ type: "speak", text: "Hello", voice_id: "v" });
      expect(speaker.listener.eventsOf("warning")).toEqual([]);
      expect(rig.requests).toHaveLength(1);
    },
  );

  it("where somebody listens already is not warned", () => {
    const rig = createRig();
    rig.join("role=listener&format=none");
    expect(rig.join("role=speaker").listener.eventsOf("warning")).toEqual([]);
  });

  it("speaks on where speech is to be spoken to nobody", () => {
    const rig = createRig({ nobodyListens: "speak" });
    const speaker = rig.join("role=speaker");
    expect(speaker.listener.eventsOf("warning")).toEqual([]);
    speaker.send({ type: "speak", text: "Hello", voice_id: "v" });
    const request = firstRequest(rig);
    request.head();
    request.chunk(countingUlaw(400));
    request.handlers.end();
    run(rig, 1000);
    expect(speaker.listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done", end_ms: 400 }]);
  });
});

describe("the last listener leaves in the middle of an utterance", () => {
  it.each(["role=speaker", null])("beside %s: reading is held, and all of it is heard later", (other) => {
    const rig = createRig({ graceMs: 60_000, aheadMs: 1000 });
    const client = rig.join("format=ulaw_8000&lead_ms=200");
    if (other !== null) rig.join(other);
    client.send({ type: "speak", text: "Hello there", voice_id: "v" });
    const request = firstRequest(rig);
    request.head();
    let givenMs = giveWhileRead(request, 0, 500);
    run(rig, 300);
    const { session } = client;
    const heardMs = client.listener.frames.length * 20;
    const hello = client.listener.eventsOf("hello")[0];
    const seq = Math.max(...client.listener.events.map((event) => event.seq));
    session.leave(client.participant);
    const madeBefore = rig.counters.framesMade;
    for (let turn = 0; turn < 50; turn += 1) {
      givenMs = giveWhileRead(request, givenMs, 10_000);
      run(rig, 200);
    }
    expect(request.isPaused).toBe(true);
    expect(request.isAborted).toBe(false);
    expect(givenMs).toBeLessThanOrEqual(500 + 1000 + 200);
    expect(rig.counters.framesMade).toBe(madeBefore);
    expect(session.isClosed).toBe(false);

    const back = rig.join(
      `format=ulaw_8000&lead_ms=200&resume=${hello?.resume_token}&seq=${seq}&at_ms=${heardMs}`,
    );
    for (let turn = 0; turn < 100; turn += 1) {
      givenMs = giveWhileRead(request, givenMs, 10_000);
      run(rig, 100);
    }
    request.handlers.end();
    run(rig, 3000);
    expect(back.listener.eventsOf("gap")).toEqual([]);
    const whole = Buffer.concat([...client.listener.frames, ...back.listener.frames]);
    expect(whole.equals(countingUlaw(10_000))).toBe(true);
    expect(back.listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done", end_ms: 10_000 }]);
  });

  it("the end of the grace period ends it", () => {
    const rig = createRig({ graceMs: 1000 });
    const client = rig.join("format=ulaw_8000");
    client.send({ type: "speak", text: "Hello there", voice_id: "v" });
    const request = firstRequest(rig);
    request.head();
    request.chunk(countingUlaw(500));
    client.session.leave(client.participant);
    run(rig, 990);
    expect(client.session.isClosed).toBe(false);
    run(rig, 20);
    expect(client.session.isClosed).toBe(true);
    expect(request.isAborted).toBe(true);
    expect(rig.sessions.count).toBe(0);
    run(rig, 5000);
    expect(rig.clock.pending).toBe(0);
  });

  it("one that comes back before it ends stops the grace period", () => {
    const rig = createRig({ graceMs: 1000 });
    const first = rig.join("format=ulaw_8000");
    first.session.leave(first.participant);
    run(rig, 900);
    const second = rig.join("format=ulaw_8000");
    run(rig, 5000);
    expect(second.session).toBe(first.session);
    expect(second.session.isClosed).toBe(false);
  });
});
