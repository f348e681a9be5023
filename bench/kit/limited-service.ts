/** What the fixture of that name is started with. */
import type { GatewayOptions } from "./commands.ts";

export type { NoCommands } from "./commands.ts";

export interface LimitedServiceOptions extends Pick<GatewayOptions, "distUrl"> {
  /** A plan of service/http/tiers.ts. */
  readonly tier: string;
  /** How long each answer stands still once it has begun, its place taken, ms. */
  readonly stallMs: number;
}
