/** A whole answer, whatever its status, for the small things of the interface: lists of voices and models. */
import { GatewayError } from "../../errors.ts";
import { headerOf, type ResponseHeaders } from "../headers.ts";
import type { ExchangeReceiver } from "./exchange.ts";

export interface FetchedBody {
  readonly status: number;
  /** Empty where the upstream named none. */
  readonly contentType: string;
  readonly body: Buffer;
}

export interface BodyCollectorOptions {
  readonly maxBytes: number;
  readonly onDone: (fetched: FetchedBody) => void;
  readonly onError: (error: GatewayError) => void;
}

export class BodyCollector implements ExchangeReceiver {
  readonly #options: BodyCollectorOptions;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;
  #status = 0;
  #contentType = "";

  constructor(options: BodyCollectorOptions) {
    this.#options = options;
  }

  sent(): void {
    // Nobody asks when a list was asked for.
  }

  head(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#contentType = headerOf(headers, "content-type") ?? "";
  }

  data(piece: Buffer): void {
    const { maxBytes } = this.#options;
    this.#bytes += piece.length;
    if (this.#bytes > maxBytes) {
      const what = `The upstream's answer is too long: over ${maxBytes} bytes`;
      throw new GatewayError("upstream_protocol", what);
    }
    this.#pieces.push(piece);
  }

  end(): void {
    const body = Buffer.concat(this.#pieces);
    this.#options.onDone({ status: this.#status, contentType: this.#contentType, body });
  }

  error(error: GatewayError): void {
    this.#options.onError(error);
  }
}
