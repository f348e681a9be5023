/** Where a token stands in the text that has come: what came before is skipped, so that a client may send it again. */
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import { beginsWithHalf, CodePointOffsets } from "../../text/code-points.ts";

/** How much has come of a text: see UtteranceText. */
interface Received {
  readonly client: string;
  readonly half: string;
  readonly leftOut: number;
}

const NOTHING: Received = { client: "", half: "", leftOut: 0 };

/** The offset at which the next token begins. In code points, half a character is not there yet. */
export function receivedIn(unit: OffsetUnit, { client, half, leftOut }: Received): number {
  if (unit === "utf16") return client.length + leftOut + half.length;
  return new CodePointOffsets(client).codePointsOf(client.length) + leftOut;
}

/** What is new of a token that begins at `offset`; null where text before it has not come. */
export function newPart(
  { text, offset }: { readonly text: string; readonly offset: number },
  unit: OffsetUnit,
  received: Received = NOTHING,
): string | null {
  const known = receivedIn(unit, received) - offset;
  if (known < 0) return null;
  if (unit === "utf16") return text.slice(known);
  let at = 0;
  for (let left = known; left > 0 && at < text.length; left -= 1)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  const rest = text.slice(at);
  return received.half !== "" && rest !== "" && !beginsWithHalf(rest) ? rest.slice(1) : rest;
}
