/** Items of the history as they are read. */
import type { MediaFile } from "./media.ts";

/** An item as it is kept: what its audio is asked for by, and its record, which goes to the client without having been a string here. */
export interface HistoryItem {
  readonly id: string;
  readonly voiceName: string | null;
  /** Seconds since 1970. */
  readonly dateUnix: number;
  readonly contentType: string;
  readonly outputFormat: string;
  readonly media: MediaFile;
  /** All that is listed of it but the alignments: a JSON object in the interface's words (history-json.ts), UTF-8. */
  readonly recordJson: Buffer;
  /** As they were given, UTF-8: most of a page's bytes. */
  readonly alignmentsJson: Buffer | null;
}

export interface HistoryPage {
  readonly items: readonly HistoryItem[];
  readonly hasMore: boolean;
}
