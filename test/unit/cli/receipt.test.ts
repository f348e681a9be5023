import { expect, test } from "vitest";
import { renderReceipt, renderWaterfall } from "../../../src/cli/say/receipt.ts";
import type { InterruptedEvent } from "../../../src/protocol/events.ts";

function interrupted(heard: string, unheard: string, source: "mark" | "ack" | "estimate"): InterruptedEvent {
  return {
    type: "interrupted",
    seq: 1,
    at_ms: 0,
    utterance_id: "u1",
    heard: { text: heard, end: heard.length, ms: 1234.4, source, bound_ms: 40 },
    unheard_text: unheard,
    resumable: true,
    next_ms: null,
  };
}

test("renderReceipt() says what was heard, what was not, and how that is known", () => {
  expect(renderReceipt(interrupted("One two ", "three.\nFour.", "ack"))).toBe(
    'Interrupted after 1234 ms (as the player reported, within 40 ms)\nHeard: "One two"\nNot heard: "three. Four."',
  );
  expect(renderReceipt(interrupted("One.", " ", "estimate"))).toBe(
    'Interrupted after 1234 ms (by estimate, within 40 ms)\nHeard: "One."',
  );
});

test("renderReceipt() shows the beginning of a long rest, in whole graphemes, and no control characters", () => {
  const receipt = renderReceipt(interrupted("a\u001b[2J", "👩‍🍳".repeat(200), "mark"));
  expect(receipt).toContain(`Not heard: "${"👩‍🍳".repeat(160)}" and 40 characters more`);
  expect(receipt).not.toContain("\u001b");
});

const LATENCY = {
  text_ms: 12.34,
  queued_ms: 0,
  connected_ms: 1,
  headers_ms: 20,
  first_byte_ms: 5,
  first_sound_ms: 30,
  first_frame_ms: 2,
  total_ms: 70.34,
  leading_silence_ms: 25,
};

test("renderWaterfall() names every stage and the sum", () => {
  const stages =
    "text 12.3 + queued 0 + connected 1 + headers 20 + first byte 5 + first sound 30 + first frame 2 = total 70.3 ms";
  expect(renderWaterfall(LATENCY)).toBe(`${stages}; 25 ms of silence before the first sound`);
  expect(renderWaterfall({ ...LATENCY, leading_silence_ms: null })).toBe(stages);
});
