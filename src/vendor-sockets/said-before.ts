/** What was said in a context or call so far, so that its next request goes on in intonation. */
import { type Stitch, stitch } from "../upstream/transport/stitching.ts";

/** As much as may tell the upstream how to go on, UTF-16 code units (upstream/transport/stitching.ts takes less). */
const MAX_CHARS = 500;

export class SaidBefore {
  #text = "";

  /** This was asked of the upstream. */
  note(text: string): void {
    this.#text = (this.#text + text).slice(-MAX_CHARS);
  }

  /** What follows has nothing to do with it. */
  forget(): void {
    this.#text = "";
  }

  /** For the next request. `modelId` "": the upstream's own; `isLogged` false: zero retention. */
  stitch(modelId: string, isLogged: boolean): Stitch {
    return stitch({ modelId, isLogged, before: this.#text, behind: "", requestIds: [] });
  }
}
