/**
 * A carrier of the tests' own, as small as can be: what the call state does with a dialect's events is tested with it,
 * whatever the real carriers' messages look like. Words: `{"on": kind, ...}` in, `{"audio": frames}` and the like out.
 */
import { GatewayError } from "../../../src/errors.ts";
import type {
  CallStart,
  CarrierCodec,
  CarrierDialect,
  CarrierEvent,
  CarrierHello,
  Wire,
} from "../../../src/protocol/carrier/carrier.ts";

export const TINY_START: CallStart = {
  callId: "call-1",
  streamId: "stream-1",
  from: "+1",
  to: "+2",
  parameters: { session: "s" },
  callerFormat: "ulaw_8000",
  format: "ulaw_8000",
  frameMs: 20,
};

export interface TinyOptions {
  /** Frames that are held back until so many are there: as a carrier with a least size needs it. */
  readonly piece?: number;
  readonly markMs?: number;
}

class TinyCodec implements CarrierCodec {
  readonly hello: CarrierHello;
  readonly #piece: number;
  #kept = 0;

  constructor(hello: CarrierHello, options: TinyOptions) {
    this.hello = hello;
    this.#piece = options.piece ?? 1;
  }

  read(message: Wire): readonly CarrierEvent[] {
    if (typeof message !== "string") return [{ kind: "media", audio: message }];
    const { on, ...fields } = JSON.parse(message) as { on: string };
    if (on === "broken") throw new GatewayError("carrier_protocol", "Message is broken");
    if (on === "two") return [{ kind: "stopped" }, { kind: "dtmf", digit: "1" }];
    return [{ kind: on, ...fields } as CarrierEvent];
  }
  audio(frames: readonly Uint8Array[]): readonly Wire[] {
    this.#kept += frames.length;
    const sent = this.#kept - (this.#kept % this.#piece);
    this.#kept -= sent;
    return sent === 0 ? [] : [`audio ${sent}`];
  }
  mark(name: string): Wire | null {
    return `mark ${name}`;
  }
  clear(): readonly Wire[] {
    this.#kept = 0;
    return ["clear"];
  }
  flush(): readonly Wire[] {
    const kept = this.#kept;
    this.#kept = 0;
    return kept === 0 ? [] : [`rest ${kept}`];
  }
  hangUp(): readonly Wire[] {
    return ["bye"];
  }
}

export function tinyDialect(options: TinyOptions = {}): CarrierDialect {
  return {
    name: "twilio",
    subprotocols: [],
    leadMs: 200,
    markMs: options.markMs ?? 100,
    open: (hello) => new TinyCodec(hello, options),
  };
}
