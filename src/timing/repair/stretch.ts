/** Changes of times, in place. */
import type { Span } from "../spans.ts";
import { weaker } from "../timed.ts";

/** Moves times: `from` becomes `to`, and what follows is stretched by `factor`. */
export function stretch(
  spans: readonly Span[],
  { from, to, factor }: { readonly from: number; readonly to: number; readonly factor: number },
): void {
  for (const span of spans) {
    span.startSeconds = to + (span.startSeconds - from) * factor;
    span.endSeconds = to + (span.endSeconds - from) * factor;
    span.timing = weaker(span.timing, "scaled");
  }
}

export function weaken(spans: readonly Span[]): void {
  for (const span of spans) span.timing = "estimated";
}
