/** The field `vendor_options`: what goes to the service that speaks as it is, under the upstream's name. */
import { z } from "zod";

/** As JSON; UTF-16 code units. */
const MAX_CHARS = 4096;
/** Objects and lists inside one another, the upstream's own object included. */
const MAX_DEPTH = 5;
const MAX_UPSTREAMS = 8;

/** What the gateway decides in whatever words a service has for it, without case and underscores. */
const OURS: ReadonlySet<string> = new Set([
  ...["text", "input", "inputs", "transcript", "utterances", "ssml", "context"],
  ...["previoustext", "nexttext", "previousrequestids", "nextrequestids"],
  ...["voice", "voices", "voiceid", "voicename", "speaker", "speakerid", "model", "modelid"],
  ...["format", "outputformat", "responseformat", "audioformat", "encoding", "container", "codec"],
  ...["samplerate", "stream", "streamformat", "numgenerations"],
]);

export type VendorOptions = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export const vendorOptions = z
  .record(
    z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "expected the name of an upstream"),
    z.record(z.string(), z.unknown()).readonly(),
  )
  .readonly()
  .superRefine((options, context) => {
    const refuse = (path: readonly string[], message: string): void => {
      context.addIssue({ code: "custom", path: [...path], message });
    };
    if (Object.keys(options).length > MAX_UPSTREAMS)
      refuse([], `expected at most ${MAX_UPSTREAMS} upstreams`);
    if (JSON.stringify(options).length > MAX_CHARS)
      refuse([], `expected at most ${MAX_CHARS} characters as JSON`);
    for (const [name, own] of Object.entries(options)) {
      if (depthOf(own) > MAX_DEPTH)
        refuse([name], `expected at most ${MAX_DEPTH} objects and lists inside one another`);
      for (const key of Object.keys(own)) {
        if (OURS.has(key.toLowerCase().replaceAll(/[^a-z]/g, ""))) {
          refuse([name, key], "it is what the gateway sends itself, expected other options");
        }
      }
    }
  });

/** Stops where it is too deep. */
function depthOf(value: unknown, atMost = MAX_DEPTH + 1): number {
  if (typeof value !== "object" || value === null || atMost === 0) return 0;
  return 1 + Math.max(0, ...Object.values(value).map((inner) => depthOf(inner, atMost - 1)));
}
