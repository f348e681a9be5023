/** What of a text with markup is sent to a service that does not read the vendor's. */

/** As long as the longest that is known, with attributes. */
const TAG = /<\/?[a-zA-Z][^<>]{0,512}>/g;
const BREAK = /^<break\b/i;

export interface SentText {
  /** What is sent. */
  readonly sent: string;
  /** As long as the text that was given, with blanks in the place of its tags: what times are found in. */
  readonly blanked: string;
  /** Whether tags were left out. */
  readonly hasIgnored: boolean;
}

/** Tags are blanked, since services read them aloud; `breaks`: those for pauses are sent as they are. */
export function sentText(text: string, breaks: "taken" | "ignored"): SentText {
  if (!text.includes("<")) return { sent: text, blanked: text, hasIgnored: false };
  let hasIgnored = false;
  const sent = text.replace(TAG, (tag) => {
    if (breaks === "taken" && BREAK.test(tag)) return tag;
    hasIgnored = true;
    return " ".repeat(tag.length);
  });
  return { sent, blanked: text.replace(TAG, (tag) => " ".repeat(tag.length)), hasIgnored };
}
