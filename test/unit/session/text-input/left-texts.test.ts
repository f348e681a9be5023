/** A speaker whose connection breaks in the middle of a text, and comes back to it, or does not. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import type { SessionSettings } from "../../../../src/session/session-deps.ts";
import { createRig } from "../../../helpers/session-rig.ts";
import { answer, textOf, VOICE } from "../spelling.ts";

const GRACE_MS = 1000;

function stage(settings: Partial<SessionSettings> = {}) {
  const rig = createRig({ graceMs: GRACE_MS, textIdleMs: 60_000, ...settings });
  const client = rig.join("format=ulaw_8000");
  const speaker = rig.join("role=speaker");
  const token = (): string => speaker.listener.eventsOf("hello")[0]?.resume_token ?? "";
  const comeBack = (query = "role=speaker") => rig.join(`${query}&resume=${token()}`);
  const asked = (): string => rig.requests.map(textOf).join("");
  let answered = 0;
  const hearOut = (ms = 10_000): void => {
    for (let passed = 0; passed < ms; passed += 50) {
      for (; answered < rig.requests.length; answered += 1) answer(rig.requests[answered]);
      rig.clock.advance(50);
    }
  };
  const outcomes = (): string[] =>
    client.listener.eventsOf("utterance.done").map((event) => `${event.utterance_id}/${event.outcome}`);
  return { ...rig, client, speaker, comeBack, asked, hearOut, outcomes };
}

function leave(
  { session, participant }: Pick<ReturnType<typeof stage>["speaker"], "session" | "participant">,
  how = {},
): void {
  session.leave(participant, how);
}

const text = (piece: string, utterance_id?: string) => ({
  type: "text",
  text: piece,
  voice_id: VOICE,
  ...(utterance_id === undefined ? {} : { utterance_id }),
});

describe("a speaker whose connection breaks within a text", () => {
  it("comes back and goes on with it, named or not", () => {
    const rig = stage();
    rig.speaker.send(text("Alpha bravo ", "u"));
    leave(rig.speaker);
    rig.hearOut(GRACE_MS - 100);
    expect(rig.outcomes()).toEqual([]);
    const back = rig.comeBack();
    rig.hearOut(2 * GRACE_MS);
    expect(rig.outcomes()).toEqual([]);
    back.send(text("charlie "));
    back.send(text("delta.", "u"));
    back.send({ type: "end" });
    rig.hearOut();
    expect(rig.asked()).toBe("Alpha bravo charlie delta.");
    expect(rig.outcomes()).toEqual(["u/done"]);
  });

  it("has it ended once nobody came for it within the grace period", () => {
    const rig = stage();
    rig.speaker.send(text("Alpha bravo", "u"));
    leave(rig.speaker);
    rig.clock.advance(GRACE_MS - 1);
    expect(rig.asked()).not.toContain("bravo");
    rig.hearOut();
    expect(rig.asked()).toBe("Alpha bravo");
    expect(rig.outcomes()).toEqual(["u/done"]);
    const back = rig.comeBack();
    expect(() => back.send(text("charlie", "u"))).toThrow(
      expect.objectContaining({ code: "utterance_over" }),
    );
  });

  it("breaks again, and has the time again", () => {
    const rig = stage();
    rig.speaker.send(text("Alpha ", "u"));
    leave(rig.speaker);
    rig.clock.advance(GRACE_MS - 100);
    const again = rig.comeBack();
    leave(again);
    rig.clock.advance(GRACE_MS - 100);
    const back = rig.comeBack();
    back.send(text("bravo."));
    back.send({ type: "end" });
    rig.hearOut();
    expect(rig.asked()).toBe("Alpha bravo.");
  });

  it.each([
    [
      "closes its connection itself",
      (rig: ReturnType<typeof stage>) => leave(rig.speaker, { isFinal: true }),
    ],
    [
      "asks to be closed",
      (rig: ReturnType<typeof stage>) => {
        rig.speaker.send({ type: "close" });
        leave(rig.speaker);
      },
    ],
    ["has no grace", (rig: ReturnType<typeof stage>) => leave(rig.speaker), { graceMs: 0 }],
  ] as [string, (rig: ReturnType<typeof stage>) => void, Partial<SessionSettings>?][])(
    "has it ended at once where it %s",
    (_, go, settings = {}) => {
      const rig = stage(settings);
      rig.speaker.send(text("Alpha bravo", "u"));
      go(rig);
      expect(rig.asked()).toBe("Alpha bravo");
    },
  );

  it.each([
    ["a listener that comes back", "role=listener&format=none"],
    ["a speaker that is new", null],
  ])("is not mistaken for %s", (_, query) => {
    const rig = stage();
    rig.speaker.send(text("Alpha ", "u"));
    leave(rig.speaker);
    const other = query === null ? rig.join("role=speaker") : rig.comeBack(query);
    if (query === null) other.send(text("Zulu.", "other"));
    rig.clock.advance(GRACE_MS);
    expect(() => (query === null ? other : rig.client).send(text("bravo", "u"))).toThrow(
      expect.objectContaining({ code: "text_after_end" }),
    );
  });

  it("goes on with its own where another one is away, too, with and without its name", () => {
    const rig = stage({ maxListeners: 5 });
    const second = rig.join("role=speaker");
    rig.speaker.send(text("Alpha ", "a"));
    second.send(text("Zulu ", "z"));
    leave(rig.speaker);
    leave(second);
    const back = rig.comeBack();
    back.send(text("bravo.", undefined));
    rig.clock.advance(2 * GRACE_MS);
    back.send(text(" Charlie.", "a"));
    back.send({ type: "end", utterance_id: "a" });
    expect(() => back.send(text("yankee", "z"))).toThrow(expect.objectContaining({ code: "text_after_end" }));
    rig.hearOut();
    expect(rig.asked()).toBe("Alpha bravo. Charlie.Zulu ");
  });

  describe("that says who it was", () => {
    const stageOfTwo = () => {
      const rig = stage({ maxListeners: 9 });
      const second = rig.join("role=speaker");
      const as = (speaker: typeof second) => {
        const hello = speaker.listener.eventsOf("hello")[0];
        return rig.join(`role=speaker&resume=${hello?.resume_token}`);
      };
      return { ...rig, second, as };
    };

    it("goes on with its own text, whoever else is away", () => {
      const rig = stageOfTwo();
      rig.speaker.send(text("Alpha ", "a"));
      rig.second.send(text("Zulu ", "z"));
      leave(rig.speaker);
      leave(rig.second);
      const [first, second] = [rig.as(rig.speaker), rig.as(rig.second)];
      first.send(text("bravo."));
      second.send(text("yankee."));
      for (const speaker of [first, second]) speaker.send({ type: "end" });
      rig.hearOut();
      expect(rig.asked()).toBe("Alpha bravo.Zulu yankee.");
    });

    it("does not take the text of another that is away", () => {
      const rig = stageOfTwo();
      rig.speaker.send(text("Alpha ", "a"));
      leave(rig.speaker);
      leave(rig.second);
      const second = rig.as(rig.second);
      second.send(text("Zulu."));
      second.send({ type: "end" });
      const first = rig.as(rig.speaker);
      first.send(text("bravo."));
      first.send({ type: "end" });
      rig.hearOut();
      expect(rig.asked()).toBe("Alpha bravo.Zulu.");
    });

    it("goes on where its old connection is seen to be gone only later", () => {
      const rig = stageOfTwo();
      rig.speaker.send(text("Alpha "));
      const back = rig.as(rig.speaker);
      back.send(text("bravo "));
      leave(rig.speaker);
      rig.clock.advance(2 * GRACE_MS);
      back.send(text("charlie."));
      back.send({ type: "end" });
      rig.hearOut();
      expect(rig.asked()).toBe("Alpha bravo charlie.");
    });

    it("goes on under its first name where the connection between did not get its hello", () => {
      const rig = stageOfTwo();
      rig.speaker.send(text("Alpha "));
      leave(rig.speaker);
      leave(rig.as(rig.speaker));
      leave(rig.as(rig.speaker));
      const back = rig.as(rig.speaker);
      back.send(text("bravo."));
      back.send({ type: "end" });
      rig.hearOut();
      expect(rig.asked()).toBe("Alpha bravo.");
    });
  });

  it("does not take the only open text where another speaker is away, too", () => {
    const rig = stage({ maxListeners: 5 });
    const second = rig.join("role=speaker");
    rig.speaker.send(text("Alpha ", "a"));
    leave(rig.speaker);
    leave(second);
    const back = rig.comeBack();
    back.send(text("Zulu."));
    back.send({ type: "end" });
    rig.hearOut();
    expect(rig.asked()).toBe("Alpha Zulu.");
  });

  it("goes on by name where its old connection is seen to be gone only later", () => {
    const rig = stage({ maxListeners: 5 });
    rig.speaker.send(text("Alpha ", "a"));
    const back = rig.comeBack();
    back.send(text("bravo ", "a"));
    leave(rig.speaker, { isFinal: true });
    rig.clock.advance(2 * GRACE_MS);
    back.send(text("charlie.", "a"));
    back.send({ type: "end", utterance_id: "a" });
    rig.hearOut();
    expect(rig.asked()).toBe("Alpha bravo charlie.");
  });

  it("gives up the one that is away longest where more are away than may be there", () => {
    const rig = stage({ maxListeners: 3 });
    rig.speaker.send(text("Alpha ", "a"));
    leave(rig.speaker);
    for (let index = 0; index < 3; index += 1) leave(rig.join("role=speaker"));
    expect(rig.asked()).toContain("Alpha");
  });

  it("is asked again to pause, and to go on", () => {
    const rig = stage({ creditChars: 20 });
    rig.speaker.send(text("Alpha bravo charlie delta echo foxtrot. ".repeat(4), "u"));
    expect(rig.speaker.listener.eventsOf("paused")).toHaveLength(1);
    leave(rig.speaker);
    const back = rig.comeBack();
    expect(back.listener.eventsOf("paused")).toMatchObject([{ utterance_id: "u", limit_chars: 20 }]);
    rig.hearOut();
    expect(back.listener.eventsOf("resumed")).toMatchObject([{ utterance_id: "u" }]);
  });

  it("leaves no timer behind when the session ends first", () => {
    const rig = stage();
    rig.speaker.send(text("Alpha ", "u"));
    leave(rig.speaker);
    rig.speaker.session.close(new GatewayError("session_closed", "Session ended"));
    expect(rig.clock.pending).toBe(0);
  });
});
