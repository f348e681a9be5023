import { expect, it } from "vitest";
import { createRig } from "../../helpers/session-rig.ts";

it("Sessions: what waits for listeners is added up over all sessions, and the worst is named", () => {
  const { sessions, join } = createRig();
  expect(sessions.sendQueues).toEqual({ bytes: 0, worstBytes: 0 });
  const listeners = [join("format=none"), join("format=none"), join("format=none", "other")];
  for (const [index, { listener }] of listeners.entries()) listener.buffered = 100 * (index + 1);
  expect(sessions.sendQueues).toEqual({ bytes: 600, worstBytes: 300 });
});

it("Sessions: utterances are in flight until they are over", () => {
  const { sessions, join } = createRig();
  const { send } = join("format=none");
  for (const utterance_id of ["a", "b"]) send({ type: "speak", text: "Hello.", voice_id: "v", utterance_id });
  expect(sessions.utteranceCount).toBe(2);
  send({ type: "cancel", utterance_id: "b" });
  expect(sessions.utteranceCount).toBe(1);
  send({ type: "interrupt" });
  expect(sessions.utteranceCount).toBe(0);
});
