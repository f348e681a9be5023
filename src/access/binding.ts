/** Whether the gateway may listen where its settings say: without keys, whoever reaches the port may do everything. */
import { GatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import { isLoopback } from "./origin-rules.ts";

interface Binding {
  readonly host: string;
  /** Empty: no keys are set. */
  readonly keysFile: string;
  /** The operator has said that anybody may use it. */
  readonly insecure: boolean;
}

const WARN_EVERY_MS = 3_600_000;

/** Whether programs of other machines reach a port that asks for no key. */
export function isInsecure({ host, keysFile }: Pick<Binding, "host" | "keysFile">): boolean {
  return keysFile === "" && !isLoopback(host);
}

/** Throws invalid_config where others would reach the port and nobody has said that they may. */
export function checkBinding(binding: Binding): void {
  if (!isInsecure(binding) || binding.insecure) return;
  throw new GatewayError(
    "invalid_config",
    `Setting host: ${binding.host} is reached from other machines, and anybody there could listen, speak and spend the ` +
      "upstream's key; set --keys-file (`voicewire keys new` makes one), listen on 127.0.0.1, or start with --insecure",
    { field: "host" },
  );
}

/** Says at once and each hour that anybody may use the gateway. Idempotent close. */
export class InsecureWarning {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #host: string;
  #timer: Timer | null = null;

  constructor(options: { readonly host: string; readonly log: Logger; readonly clock: Clock }) {
    this.#log = options.log;
    this.#clock = options.clock;
    this.#host = options.host;
    this.#warn();
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #warn(): void {
    this.#log.warn(
      { host: this.#host },
      "Insecure: anybody who reaches this address may listen, speak and spend the key",
    );
    this.#timer = this.#clock.at(this.#clock.nowMs() + WARN_EVERY_MS, () => this.#warn());
  }
}
