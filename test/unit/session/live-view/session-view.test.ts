/** What operators see of a session: its row, its listeners, and what has happened to it. */
import { describe, expect, it } from "vitest";
import { countingUlaw, createRig, evenAlignment } from "../../../helpers/session-rig.ts";

const TEXT = "Hello there, general listener.";

/** A session that speaks `TEXT`, 100 ms a character. */
function speakingRig(query = "format=ulaw_8000&events=words") {
  const rig = createRig();
  const client = rig.join(query);
  client.send({ type: "speak", text: TEXT, voice_id: "nora", utterance_id: "u" });
  const [request] = rig.requests;
  request?.head();
  request?.chunk(countingUlaw(TEXT.length * 100), { alignment: evenAlignment(TEXT, 100) });
  request?.handlers.end();
  return { ...rig, client, view: client.session.view };
}

describe("the row of a session", () => {
  it("says what it does: nothing, something that waits, something that is heard", () => {
    const rig = createRig();
    const client = rig.join("format=ulaw_8000");
    const { view } = client.session;
    expect(view.row()).toMatchObject({ state: "idle", utterances: 0, lead_ms: 0, voice: "" });
    client.send({ type: "speak", text: TEXT, voice_id: "nora" });
    expect(view.row()).toMatchObject({ state: "waiting", utterances: 1, voice: "nora" });
    rig.requests[0]?.head();
    rig.requests[0]?.chunk(countingUlaw(3000));
    rig.clock.advance(500);
    const row = view.row();
    expect(row).toMatchObject({ state: "speaking", listeners: 1, speakers: 1, lag_ms: 0 });
    expect(row.lead_ms).toBeGreaterThan(0);
  });

  it("says for how long it is open", () => {
    const rig = createRig();
    const { session } = rig.join("format=ulaw_8000");
    rig.clock.advance(5100);
    expect(session.view.row().age_s).toBe(5);
  });

  it("has the lag of the listener that is furthest behind, by what its socket has not taken", () => {
    const { clock, join, view } = speakingRig();
    const slow = join("role=listener&format=ulaw_8000");
    clock.advance(1000);
    expect(view.row()).toMatchObject({ lag_ms: 0, queue_bytes: 0 });
    // A second of mu-law, beyond the 200 ms that it is ahead.
    slow.listener.buffered = 8000;
    const row = view.row();
    expect(row.queue_bytes).toBe(8000);
    expect(row.lag_ms).toBeGreaterThan(700);
    expect(row.lag_ms).toBeLessThanOrEqual(1000);
  });

  it("takes a listener's own word for where it is", () => {
    const { clock, client, view } = speakingRig();
    clock.advance(1500);
    client.send({ type: "played", at_ms: 300 });
    const { listeners } = view.open(true);
    expect(listeners).toMatchObject([{ lag_by: "ack", acknowledged_ms_ago: 0 }]);
    expect(listeners[0]?.lag_ms).toBeGreaterThan(900);
    expect(listeners[0]?.at_ms).toBe(300);
  });

  it("counts frames that were dropped, by listener", () => {
    const { clock, join, view } = speakingRig();
    const slow = join("role=listener&format=ulaw_8000&policy=live");
    clock.advance(200);
    slow.listener.isFull = true;
    clock.advance(1500);
    slow.listener.isFull = false;
    slow.session.drained(slow.participant);
    const { session, listeners } = view.open(true);
    expect(session.dropped_frames).toBeGreaterThan(10);
    expect(listeners.map(({ dropped_frames }) => dropped_frames)).toEqual([0, session.dropped_frames]);
  });

  it("counts underruns and interrupts, and says where they were", () => {
    const rig = createRig();
    const client = rig.join("format=ulaw_8000");
    client.send({ type: "speak", text: TEXT, utterance_id: "u", voice_id: "v" });
    rig.requests[0]?.head();
    rig.requests[0]?.chunk(countingUlaw(500));
    rig.clock.advance(2000);
    const { view } = client.session;
    expect(view.row()).toMatchObject({ underruns: 1, interrupts: 0, state: "waiting" });
    rig.requests[0]?.chunk(countingUlaw(1000));
    rig.clock.advance(300);
    client.send({ type: "interrupt" });
    expect(view.row()).toMatchObject({ underruns: 1, interrupts: 1, state: "idle" });
    expect(view.open(true).moments).toMatchObject([
      { type: "underrun", at_ms: 500 },
      { type: "interrupted", utterance_id: "u", start_ms: 0 },
    ]);
  });
});

describe("a session that is opened", () => {
  it("has its utterances with segments and words, and where the playhead is", () => {
    const { clock, view } = speakingRig();
    clock.advance(1000);
    const opened = view.open(true);
    expect(opened).toMatchObject({ is_moving: true, shows_text: true });
    expect(opened.playhead_ms).toBeGreaterThan(900);
    expect(opened.made_ms).toBeGreaterThan(opened.playhead_ms);
    const [utterance] = opened.utterances;
    expect(utterance).toMatchObject({
      id: "u",
      state: "speaking",
      start_ms: 0,
      end_ms: null,
      characters: TEXT.length,
    });
    expect(utterance?.segments).toMatchObject([{ start_ms: 0 }]);
    expect(utterance?.words[0]).toEqual({ start_ms: 0, end_ms: 500, text: "Hello" });
  });

  it("has words without their text where that is not to be read", () => {
    const { clock, view } = speakingRig();
    clock.advance(1000);
    const opened = view.open(false);
    const words = opened.utterances.flatMap((utterance) => utterance.words);
    expect(words.length).toBeGreaterThan(0);
    expect(words.every(({ text }) => text === "")).toBe(true);
    expect(JSON.stringify(opened)).not.toMatch(/Hello|there|general/);
  });

  it("remembers the last 32 things that happened, however many there were", () => {
    const rig = createRig();
    const client = rig.join("format=ulaw_8000");
    for (let count = 0; count < 50; count += 1) {
      client.send({ type: "speak", text: "Hi.", utterance_id: `u${count}`, voice_id: "v" });
      client.send({ type: "interrupt" });
    }
    const { moments, session } = client.session.view.open(true);
    expect(session.interrupts).toBe(50);
    expect(moments).toHaveLength(32);
    expect(moments.at(-1)).toMatchObject({ type: "interrupted", utterance_id: "u49" });
  });

  it("counts no underrun where a text comes just behind speech that is over", () => {
    const rig = createRig();
    const client = rig.join("format=ulaw_8000");
    client.send({ type: "speak", text: TEXT, utterance_id: "u", voice_id: "v" });
    rig.requests[0]?.head();
    // It ends inside a frame: its end is told before the playhead is at the end of what was sent.
    rig.requests[0]?.chunk(countingUlaw(501));
    rig.requests[0]?.handlers.end();
    while (client.listener.eventsOf("utterance.done").length === 0) rig.clock.advance(1);
    rig.clock.advance(25);
    client.send({ type: "speak", text: TEXT, utterance_id: "next", voice_id: "v" });
    rig.clock.advance(200);
    expect(client.session.view.row()).toMatchObject({ underruns: 0, state: "waiting" });
    rig.requests[1]?.head();
    rig.requests[1]?.chunk(countingUlaw(500));
    rig.clock.advance(1000);
    expect(client.session.view.row()).toMatchObject({ underruns: 1 });
  });
});
