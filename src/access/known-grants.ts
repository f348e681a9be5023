/**
 * Grants of tokens, read once: an issuer gives most of its tokens the same ones, and to check them takes longer than to compare
 * them. Bounded: where there are too many, all are forgotten.
 */
import { GRANTS, type Grants, wrongField } from "./grants.ts";

const MAX_GRANTS = 1000;

export class KnownGrants {
  /** By their JSON. */
  readonly #byJson = new Map<string, Grants>();

  /** `vw`: the claim as it came. Throws what `refuse` makes of the path of what is wrong first. */
  read(vw: unknown, refuse: (path: readonly PropertyKey[]) => Error): Grants {
    const json = JSON.stringify(vw) ?? "";
    const known = this.#byJson.get(json);
    if (known !== undefined) return known;
    const { data, error } = GRANTS.safeParse(vw);
    if (data === undefined) throw refuse(wrongField(error));
    if (this.#byJson.size >= MAX_GRANTS) this.#byJson.clear();
    this.#byJson.set(json, data);
    return data;
  }
}
