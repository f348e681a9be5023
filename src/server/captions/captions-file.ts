/** Captions as a file: what a session remembers of them, at once or as it grows. */
import type { Listener } from "../../delivery/listener.ts";
import { cueOfEvent, srtCue, VTT_HEADER, vttCue } from "../../protocol/captions.ts";
import type { CueEvent } from "../../protocol/events.ts";
import type { FileRequest } from "./captions-request.ts";

/** SubRip does not say what its bytes are; and a response with nothing in it would send no head. */
const BYTE_ORDER_MARK = "\ufeff";

/** Writes cues as the request asks for them, numbered on. */
export class CaptionWriter {
  readonly #request: FileRequest;
  #count = 0;

  constructor(request: FileRequest) {
    this.#request = request;
  }

  /** What stands before the first cue. */
  get header(): string {
    return this.#request.name === "vtt" ? VTT_HEADER : BYTE_ORDER_MARK;
  }

  /** Nothing of cues that were over where the file begins. */
  write(cues: readonly CueEvent[]): string {
    const { name, hasWordTimes, originMs } = this.#request;
    let text = "";
    for (const event of cues) {
      if (event.end_ms <= originMs) continue;
      this.#count += 1;
      const cue = cueOfEvent(event, originMs);
      text += name === "vtt" ? vttCue(cue, { hasWordTimes }) : srtCue(cue, this.#count);
    }
    return text;
  }
}

/** For the reader of a growing file, whose cues and end come from what the session remembers: it needs no events. */
export const IGNORING_LISTENER: Listener = {
  deliver: () => "sent",
  notify: () => "sent",
  bufferedBytes: () => 0,
  end: () => undefined,
};
