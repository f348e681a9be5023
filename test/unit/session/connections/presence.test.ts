/** Who is there: emitted to those who asked, at once for one and bundled for many. */
import { describe, expect, it } from "vitest";
import { Presence, type PresenceNews } from "../../../../src/session/connections/presence.ts";
import { FakeClock } from "../../../helpers/fake-clock.ts";
import { createRig, evenAlignment } from "../../../helpers/session-rig.ts";

const WATCHING = "role=listener&format=none&events=presence";

function crowdRig(listeners = 2000) {
  return createRig({ maxListeners: listeners });
}

const news = (joined: ReturnType<ReturnType<typeof createRig>["join"]>) =>
  joined.listener
    .eventsOf("presence")
    .map(({ joined: come, left, listeners, speakers }) => ({ come, left, listeners, speakers }));

describe("presence", () => {
  it.each([
    ["role=both&format=ulaw_8000", { listeners: 2, speakers: 1 }],
    ["role=both&format=none", { listeners: 2, speakers: 1 }],
    ["role=listener&format=ulaw_8000", { listeners: 2, speakers: 0 }],
    ["role=listener&format=none", { listeners: 2, speakers: 0 }],
    ["role=speaker", { listeners: 1, speakers: 1 }],
    ["role=speaker&format=ulaw_8000", { listeners: 2, speakers: 1 }],
  ])("reports one that joins with %s, and that it left", (query, counts) => {
    const { join, clock } = crowdRig();
    const watcher = join(WATCHING);
    clock.advance(1000);
    const other = join(query);
    clock.advance(1000);
    other.session.leave(other.participant);
    const own = { come: watcher.participant.id, left: undefined, listeners: 1, speakers: 0 };
    expect(news(watcher)).toEqual([
      own,
      { come: other.participant.id, left: undefined, ...counts },
      { come: undefined, left: other.participant.id, listeners: 1, speakers: 0 },
    ]);
    expect(other.listener.eventsOf("hello")[0]?.listener_id).toBe(other.participant.id);
  });

  it("comes only to those who asked, and not to the one that left", () => {
    const { join, clock } = crowdRig();
    const watcher = join(WATCHING);
    const deaf = join("role=listener&format=none&events=words,marks");
    clock.advance(1000);
    const leaver = join(WATCHING);
    clock.advance(1000);
    const before = leaver.listener.sent.length;
    leaver.session.leave(leaver.participant);
    leaver.session.leave(leaver.participant);
    clock.advance(1000);
    expect(leaver.listener.sent).toHaveLength(before);
    expect(news(watcher).filter(({ left }) => left === leaver.participant.id)).toHaveLength(1);
    expect(deaf.listener.eventsOf("presence")).toEqual([]);
  });

  it("nobody asked: no event is made, and no number is used up", () => {
    const { join, clock } = crowdRig();
    join("format=none&events=none");
    clock.advance(1000);
    expect(join("format=none&events=none").listener.eventsOf("hello")[0]?.seq).toBe(0);
  });

  it("a thousand that come in a burst are a handful of events with the right counts", () => {
    const { join, clock } = crowdRig();
    const watcher = join(WATCHING);
    const crowd = Array.from({ length: 1000 }, () => join("role=listener&format=none&events=presence"));
    clock.advance(1000);
    const emitted = news(watcher);
    expect(emitted.length).toBeLessThanOrEqual(3);
    expect(emitted.at(-1)).toEqual({ come: undefined, left: undefined, listeners: 1001, speakers: 0 });
    for (const one of crowd) {
      one.session.leave(one.participant);
      clock.advance(1);
    }
    clock.advance(1000);
    expect(news(watcher).length - emitted.length).toBeLessThanOrEqual(6);
    expect(news(watcher).at(-1)).toMatchObject({ listeners: 1, speakers: 0 });
  });

  it("one that is refused is not reported", () => {
    const { join, clock } = crowdRig(2);
    const watcher = join(WATCHING);
    join("format=none");
    clock.advance(1000);
    const before = watcher.listener.events.length;
    expect(() => join("format=none")).toThrow(expect.objectContaining({ code: "listener_limit" }));
    clock.advance(1000);
    expect(watcher.listener.events).toHaveLength(before);
  });

  it("a configure turns it on", () => {
    const { join, clock } = crowdRig();
    const watcher = join("format=none&events=none");
    watcher.send({ type: "configure", events: ["presence"] });
    clock.advance(1000);
    const other = join("role=listener&format=none");
    expect(news(watcher)).toMatchObject([{ come: other.participant.id, listeners: 2, speakers: 1 }]);
  });
});

describe("what belongs to the present, while one takes all as it is made", () => {
  const TEXT = "The first sentence is here. The second one comes after it. The third one is the last of all.";
  const PER_LETTER_MS = 60;

  /** How long those who watch wait for a joiner's presence and for the end of a text that is cancelled, and where the cues came. */
  function delays(others: readonly string[]) {
    const { join, clock, requests } = createRig({
      maxListeners: 20,
      aheadMs: 5000,
    });
    const speaker = join("role=speaker&events=none");
    const watcher = join("role=listener&format=ulaw_8000&events=presence,cues");
    for (const query of others) join(query);
    const run = (ms: number): void => {
      for (let passed = 0; passed < ms; passed += 5) clock.advance(5);
    };
    run(500);
    speaker.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id: "u" });
    const [request] = requests;
    if (request === undefined) throw new Error("No request was opened");
    request.head();
    for (let at = 0; at < TEXT.length; at += 4) {
      const piece = TEXT.slice(at, at + 4);
      const bytesPerMs = request.request.outputFormat === "pcm_16000" ? 32 : 8;
      const audio = new Uint8Array(piece.length * PER_LETTER_MS * bytesPerMs).fill(at);
      request.chunk(audio, { alignment: evenAlignment(piece, PER_LETTER_MS, at * PER_LETTER_MS) });
      run(20);
    }
    request.handlers.end();
    run(100);
    const waitFor = (isThere: () => boolean): number => {
      for (let waitedMs = 0; ; waitedMs += 5) {
        if (isThere() || waitedMs > 10_000) return waitedMs;
        run(5);
      }
    };
    const other = join("role=listener&format=none&events=none");
    const presenceMs = waitFor(() => news(watcher).some(({ come }) => come === other.participant.id));
    speaker.send({ type: "speak", text: "It waits.", voice_id: "v", utterance_id: "next" });
    speaker.send({ type: "cancel", utterance_id: "next" });
    const isDone = (id: string) =>
      watcher.listener.eventsOf("utterance.done").some((one) => one.utterance_id === id);
    const cancelMs = waitFor(() => isDone("next"));
    waitFor(() => isDone("u"));
    let frames = 0;
    const cueFrames: number[] = [];
    for (const { frame, event } of watcher.listener.sent) {
      if (frame !== undefined) frames += 1;
      if (event?.type === "cue") cueFrames.push(frames);
    }
    return { presenceMs, cancelMs, cueFrames };
  }

  it("comes as soon as where nobody does", () => {
    const burst = "role=listener&format=pcm_16000&pace=burst&events=none";
    const alone = delays(["role=listener&format=pcm_16000&events=none"]);
    expect(alone.presenceMs).toBeLessThan(600);
    expect(alone.cancelMs).toBeLessThan(600);
    expect(delays([burst])).toEqual(alone);
  });

  it("comes as soon beside one that is sent everything long before it is due, and so do a mark and the end before it", () => {
    const early = "role=listener&format=pcm_16000&lead_ms=10000&events=none";
    const { presenceMs, cancelMs } = delays([early]);
    expect(presenceMs).toBeLessThan(600);
    expect(cancelMs).toBeLessThan(600);
  });

  it("comes in the order of its numbers, with what was emitted of the sound that is still to come", () => {
    const { join, clock, requests } = createRig({ maxListeners: 20 });
    const speaker = join("role=speaker&format=ulaw_8000&events=words,marks");
    join("role=listener&format=ulaw_8000&lead_ms=10000&events=none");
    for (const [index, text] of ["One.", "Two two two two two.", "Three three."].entries()) {
      speaker.send({ type: "speak", text, voice_id: "v" });
      if (index === 0) speaker.send({ type: "mark", name: "m" });
      const request = requests[index];
      request?.head();
      const timing = { alignment: evenAlignment(text, 100) };
      request?.chunk(new Uint8Array(text.length * 800).fill(index), timing);
      request?.handlers.end();
      clock.advance(5);
    }
    for (let passed = 0; passed < 500; passed += 5) clock.advance(5);
    const emitted = speaker.listener.events.filter(({ type }) => /^(utterance.done|mark|words)$/.test(type));
    expect(emitted.map(({ type }) => type)).toEqual(["words", "words", "words", "utterance.done", "mark"]);
    const seqs = emitted.map(({ seq }) => seq);
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
    for (let passed = 0; passed < 4000; passed += 5) clock.advance(5);
    expect(speaker.listener.eventsOf("utterance.done")).toHaveLength(3);
    expect(speaker.listener.eventsOf("words")).toHaveLength(3);
  });
});

describe("Presence", () => {
  function watched() {
    const clock = new FakeClock();
    const emitted: (PresenceNews & { atMs: number })[] = [];
    const startMs = clock.nowMs();
    const presence = new Presence({
      clock,
      count: () => ({ listeners: 1, speakers: 1 }),
      emit: (one) => emitted.push({ ...one, atMs: clock.nowMs() - startMs }),
    });
    return { clock, emitted, presence };
  }

  it("names a single change, however soon it comes after another, and no more than one in a bundle", () => {
    const { clock, emitted, presence } = watched();
    presence.changed({ joined: "a" });
    clock.advance(100);
    presence.changed({ left: "a" });
    clock.advance(400);
    presence.changed({ joined: "b" });
    presence.changed({ joined: "c" });
    presence.changed({ left: "b" });
    clock.advance(1000);
    expect(emitted.map(({ joined, left, atMs }) => ({ joined, left, atMs }))).toEqual([
      { joined: "a", left: undefined, atMs: 0 },
      { joined: undefined, left: "a", atMs: 250 },
      { joined: "b", left: undefined, atMs: 500 },
      { joined: undefined, left: undefined, atMs: 750 },
    ]);
  });

  it("reports nothing once it is closed", () => {
    const { clock, emitted, presence } = watched();
    presence.changed({ joined: "a" });
    presence.changed({ joined: "b" });
    presence.close();
    presence.close();
    clock.advance(1000);
    expect(emitted).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });
});
