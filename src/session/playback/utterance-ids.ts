/** Ids of a session's utterances: the client's own or made up, none twice within memory. */
import { GatewayError } from "../../errors.ts";

/** Ids of utterances that are over but may not be used again yet. */
const REMEMBERED_IDS = 256;

export class UtteranceIds {
  readonly #used = new Set<string>();
  #next = 1;

  /** Whether an utterance had this id, as far as is remembered. */
  has(id: string): boolean {
    return this.#used.has(id);
  }

  /** Throws utterance_id_taken. `isInUse`: of utterances that are not over, however long ago they came. */
  mustBeFree(id: string, isInUse: (id: string) => boolean): void {
    if (!this.#used.has(id) && !isInUse(id)) return;
    throw new GatewayError("utterance_id_taken", `Utterance id is taken: ${id}, expected a new one`, {
      field: "utterance_id",
    });
  }

  /** A fresh id, or the wanted one. Throws utterance_id_taken. */
  take(wanted: string | undefined, isInUse: (id: string) => boolean): string {
    if (wanted !== undefined) this.mustBeFree(wanted, isInUse);
    let id = wanted;
    while (id === undefined || (wanted === undefined && this.#used.has(id))) id = `u${this.#next++}`;
    this.#used.add(id);
    for (const oldest of this.#used) {
      if (this.#used.size <= REMEMBERED_IDS) break;
      this.#used.delete(oldest);
    }
    return id;
  }
}
