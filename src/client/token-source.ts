/** Where a connection's tokens come from: a fixed one, or a function that gets a new one each time. */
import { clientError, type VoicewireError } from "./client-error.ts";

/** A key or a token of the gateway, or what gets one. */
export type TokenOption = string | (() => string | Promise<string>);

/** What can stand in a header as one subprotocol (RFC 9110 section 5.6.2): tokens and keys are made of less. */
const SENDABLE = /^[\w.~+-]+$/;

export class TokenSource {
  #option: TokenOption;

  constructor(option: TokenOption) {
    this.#option = option;
  }

  /** Whether another one can be had when this one has expired. */
  get isRenewable(): boolean {
    return typeof this.#option === "function";
  }

  /** The one to send now. Rejects with token_failed. */
  async next(): Promise<string> {
    let token: unknown;
    try {
      token = await (typeof this.#option === "function" ? this.#option() : this.#option);
    } catch (thrown) {
      throw failed(`none came: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
    // What it is stays out of the message: it may be a secret.
    if (typeof token !== "string" || !SENDABLE.test(token)) throw failed("what came is none");
    return token;
  }

  /** The connection goes on with this one: a fixed one before it is no longer sent. */
  replace(token: string): void {
    if (typeof this.#option === "string") this.#option = token;
  }
}

function failed(why: string): VoicewireError {
  return clientError("token_failed", `Token: ${why}`);
}
