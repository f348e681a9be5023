/** Whether the gateway may listen where its settings say: without keys, whoever reaches a port may do everything there. */
import { GatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import { isLoopback } from "./origin-rules.ts";

export interface Binding {
  readonly host: string;
  readonly opsHost: string;
  /** Reverse proxies that say for whom they ask; empty: none. */
  readonly trustedProxies: string;
  /** Empty: no keys are set. */
  readonly keysFile: string;
}

/** How programs of other machines reach a gateway that asks for no key. */
export interface OpenWay {
  readonly setting: "host" | "trusted-proxies" | "ops-host";
  /** Who comes that way and what they may do, in plain words. */
  readonly consequence: string;
  /** What closes it, beside keys. */
  readonly remedy: string;
}

const WARN_EVERY_MS = 3_600_000;
const EVERYTHING = "may listen to every session, speak, and spend the upstream's key";

export function openWays({ host, opsHost, trustedProxies, keysFile }: Binding): readonly OpenWay[] {
  if (keysFile !== "") return [];
  const ways: OpenWay[] = [];
  if (!isLoopback(host)) {
    const consequence = `whoever reaches ${host} ${EVERYTHING}`;
    ways.push({ setting: "host", consequence, remedy: "listen on 127.0.0.1" });
  }
  // Whom a proxy serves, it brings to a loopback address, too.
  if (trustedProxies !== "") {
    const consequence = `whoever reaches the reverse proxy at ${trustedProxies} ${EVERYTHING}`;
    ways.push({ setting: "trusted-proxies", consequence, remedy: "let no proxy bring requests here" });
  }
  if (!isLoopback(opsHost)) {
    const consequence = `whoever reaches the operations port at ${opsHost} may read what is said in every session`;
    ways.push({ setting: "ops-host", consequence, remedy: "have the operations port on 127.0.0.1" });
  }
  return ways;
}

/** What closes these ways, in words that an operator can follow. */
export function remedyOf(ways: readonly OpenWay[]): string {
  const others = ways.map(({ remedy }) => remedy).join(" and ");
  return `set --keys-file (\`voicewire keys new app\` makes one), or ${others}`;
}

/** Throws invalid_config where others would reach the gateway and nobody has said (`insecure`) that they may. */
export function checkBinding(binding: Binding & { readonly insecure: boolean }): void {
  const ways = openWays(binding);
  const [first] = ways;
  if (first === undefined || binding.insecure) return;
  const consequences = ways.map(({ consequence }) => consequence).join("; ");
  throw new GatewayError(
    "invalid_config",
    `Setting ${first.setting}: without keys ${consequences}; ${remedyOf(ways)}, or start with --insecure`,
    { field: first.setting },
  );
}

/** Says at once and each hour that anybody may use the gateway. Idempotent close. */
export class InsecureWarning {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #ways: readonly OpenWay[];
  #timer: Timer | null = null;

  constructor(options: { readonly ways: readonly OpenWay[]; readonly log: Logger; readonly clock: Clock }) {
    this.#log = options.log;
    this.#clock = options.clock;
    this.#ways = options.ways;
    this.#warn();
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #warn(): void {
    for (const { setting, consequence } of this.#ways)
      this.#log.warn({ setting }, `Insecure: ${consequence}`);
    this.#timer = this.#clock.at(this.#clock.nowMs() + WARN_EVERY_MS, () => this.#warn());
  }
}
