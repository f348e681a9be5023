/** A scripted service that dies in the middle of its first answer. */
import type { FakeAnswer, FakeReaction, FakeScript } from "../../helpers/fake-answer.ts";

/** The body of an answer as one piece. */
function bodyOf({ body = [] }: FakeAnswer): Buffer {
  return Buffer.concat(
    body.flatMap((step) =>
      typeof step === "string" ? [Buffer.from(step)] : step instanceof Uint8Array ? [step] : [],
    ),
  );
}

/** Its first answer ends at this part of it, 0 to 1: reset and cut by turns, what came before it read or not. */
export function dyingAt(script: FakeScript, place: number, count: number): FakeScript {
  let hasDied = false;
  return async (request, index) => {
    const reaction: FakeReaction = await script(request, index);
    if (hasDied || request.method !== "POST" || typeof reaction === "string") return reaction;
    hasDied = true;
    if (place === 0) return "reset";
    const bytes = bodyOf(reaction);
    const sent = bytes.subarray(0, Math.floor((bytes.length * (place - 1)) / (count - 2)));
    const { splitBytes: _split, ...head } = reaction;
    return {
      ...head,
      body: [sent, { afterMs: place % 3 === 0 ? 0 : 10 }, place % 2 === 0 ? "reset" : "cut"],
    };
  };
}
