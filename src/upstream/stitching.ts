/**
 * How a request tells the upstream of the text around it, so that intonation goes on across segments. The rules are
 * those of the models (contract A2): eleven_v3 refuses all of it; request ids win over text, at most three, not with
 * zero retention.
 */

export interface StitchFacts {
  /** Empty = the upstream's own. */
  readonly modelId: string;
  /** false = zero retention: the upstream forgets request ids. */
  readonly isLogged: boolean;
  /** Text before and behind, as it is spoken. */
  readonly before: string;
  readonly behind: string;
  /** Ids of earlier requests, oldest first. */
  readonly requestIds: readonly string[];
}

export interface Stitch {
  readonly previousText?: string;
  readonly nextText?: string;
  readonly previousRequestIds?: readonly string[];
}

/** As much as helps with intonation, UTF-16 code units. */
const MAX_PREVIOUS_CHARS = 200;
const MAX_NEXT_CHARS = 100;
/** Contract A2. */
const MAX_REQUEST_IDS = 3;

export function stitch(facts: StitchFacts): Stitch {
  if (/_v3\b|_v3_/.test(facts.modelId)) return {};
  const previousText = tail(facts.before.trimEnd(), MAX_PREVIOUS_CHARS).trimStart();
  const nextText = head(facts.behind.trimStart(), MAX_NEXT_CHARS).trimEnd();
  const requestIds = facts.isLogged ? facts.requestIds.slice(-MAX_REQUEST_IDS) : [];
  return {
    ...(requestIds.length > 0
      ? { previousRequestIds: requestIds }
      : previousText === ""
        ? {}
        : { previousText }),
    ...(nextText === "" ? {} : { nextText }),
  };
}

/** The last words within `max`; where no space is near to cut at (Chinese, Japanese, Thai), the last characters. */
function tail(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(-max);
  const space = cut.search(/\s/);
  return space < 0 || space > max / 4 ? cut.replace(/^[\udc00-\udfff]/, "") : cut.slice(space);
}

/** The first words within `max`. */
function head(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, max);
  const space = cut.search(/\s\S*$/);
  return space < (max * 3) / 4 ? cut.replace(/[\ud800-\udbff]$/, "") : cut.slice(0, space);
}
