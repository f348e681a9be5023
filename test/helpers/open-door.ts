/** The door of a gateway without keys: whoever comes may do everything. */
import { ANYBODY } from "../../src/access/caller.ts";
import { createDoor } from "../../src/access/door.ts";
import { OriginRules } from "../../src/access/origin-rules.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { CallerRights } from "../../src/server/carriers/caller-rights.ts";
import type { ResponseTerms } from "../../src/server/response-lease.ts";
import { DEFAULTS } from "./start-gateway.ts";
import { watchedLog } from "./watched-log.ts";

export const OPEN_DOOR = createDoor({ ...DEFAULTS, log: watchedLog, clock: systemClock });

/** Who brings a call may do everything. */
export const ANY_CALL = new CallerRights({ door: OPEN_DOOR, caller: ANYBODY, surface: "test", address: "" });

/** A response that goes on for as long as its client likes. */
export const OPEN_TERMS: ResponseTerms = {
  door: OPEN_DOOR,
  caller: ANYBODY,
  mustStay: () => undefined,
  isEndless: true,
};

/** What routes of a port on loopback are checked with. */
export const OPEN_CHECKS = { origins: new OriginRules({ host: "127.0.0.1" }), door: OPEN_DOOR };
