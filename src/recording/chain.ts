/** The hashes of lines, each that of the one before it and of its own line. */
import { createHash } from "node:crypto";
import { HASH_CHARS } from "./format.ts";

export class Chain {
  #hash = "";

  /** The line with its hash, without an end. */
  sign(json: string): string {
    return `${this.next(json)} ${json}`;
  }

  next(json: string): string {
    this.#hash = createHash("sha256")
      .update(this.#hash)
      .update(json)
      .digest("base64url")
      .slice(0, HASH_CHARS);
    return this.#hash;
  }
}
