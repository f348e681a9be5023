/** RTP headers across an interruption: packets that were made ahead and never sent are no loss. */
import { describe, expect, it } from "vitest";
import { countingUlaw, createRig, evenAlignment } from "../../../helpers/session-rig.ts";

const RTP = "role=listener&format=ulaw_8000&framing=rtp&events=none";
const TEXT = "Hello my very good friend of old, how are you?";

type Rig = ReturnType<typeof createRig>;

const headersOf = ({ listener }: ReturnType<Rig["join"]>) =>
  listener.frames.map((packet) => {
    const header = new DataView(packet.buffer, packet.byteOffset);
    return { sequence: header.getUint16(2), timestamp: header.getUint32(4) };
  });

/** How far number and time rise from each packet to the next, in frames. */
function stepsOf(headers: ReturnType<typeof headersOf>): string[] {
  return headers.slice(1).map(({ sequence, timestamp }, at) => {
    const before = headers[at] ?? { sequence: 0, timestamp: 0 };
    return `${(sequence - before.sequence) & 0xffff} ${((timestamp - before.timestamp) >>> 0) / 160}`;
  });
}

function stage(others: readonly string[]) {
  const rig = createRig({ maxListeners: 9 });
  const speaker = rig.join("role=speaker&events=none");
  const client = rig.join(RTP);
  const there = others.map((query) => rig.join(query));
  const say = (utterance_id: string): void => {
    const count = rig.requests.length;
    speaker.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id });
    const request = rig.requests[count];
    request?.head();
    request?.chunk(countingUlaw(4600), { alignment: evenAlignment(TEXT, 100) });
    request?.handlers.end();
  };
  const run = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += 5) rig.clock.advance(5);
  };
  return { rig, speaker, client, there, say, run };
}

describe("an interruption of speech in RTP packets", () => {
  it.each([
    ["alone", []],
    ["beside one that is sent more in another codec", ["role=listener&format=alaw_8000&lead_ms=2000"]],
    ["beside one that is sent more of the same packets", [`${RTP}&lead_ms=1000`]],
    ["beside one that is sent less of them", [`${RTP}&lead_ms=40`]],
    ["beside two", [`${RTP}&lead_ms=40`, `${RTP}&lead_ms=1000`]],
  ])("%s leaves no hole in their numbers and times", (_, others) => {
    const { speaker, client, there, say, run } = stage(others);
    say("a");
    run(700);
    const before = headersOf(client).length;
    speaker.send({ type: "interrupt" });
    say("b");
    run(700);
    speaker.send({ type: "interrupt" });
    say("c");
    run(6000);
    const steps = stepsOf(headersOf(client));
    expect(steps.length).toBeGreaterThan(before * 2 + 50);
    for (const one of [
      client,
      ...there.filter(({ participant }) => participant.settings.framing === "rtp"),
    ]) {
      expect(new Set(stepsOf(headersOf(one)))).toEqual(new Set(["1 1"]));
    }
  });

  it("gives one that has gone and comes back no number twice", () => {
    const { rig, speaker, there, say, run } = stage([`${RTP}&lead_ms=1000`]);
    const [early] = there;
    if (early === undefined) throw new Error("Nobody is there");
    say("a");
    run(700);
    const sent = headersOf(early).at(-1);
    const token = early.listener.eventsOf("hello")[0]?.resume_token ?? "";
    early.session.leave(early.participant);
    speaker.send({ type: "interrupt" });
    const seq = speaker.listener.events.at(-1)?.seq;
    const back = rig.join(`${RTP}&lead_ms=1000&resume=${token}&seq=${seq}`);
    say("b");
    run(700);
    expect(headersOf(back)[0]?.sequence).toBe(((sent?.sequence ?? 0) + 1) & 0xffff);
    expect(headersOf(back)[0]?.timestamp).toBe(((sent?.timestamp ?? 0) + 160) >>> 0);
  });

  it("an interruption of queued utterances alone keeps the packets that are still to be sent", () => {
    const { speaker, client, say, run } = stage([]);
    say("a");
    say("b");
    run(700);
    speaker.send({ type: "interrupt", utterance_id: "b" });
    run(6000);
    const headers = headersOf(client);
    expect(headers).toHaveLength(230);
    expect(new Set(stepsOf(headers))).toEqual(new Set(["1 1"]));
  });
});
