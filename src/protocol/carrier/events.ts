/** Events that several dialects make. */
import type { CarrierEvent } from "./carrier.ts";

export const NO_EVENTS: readonly CarrierEvent[] = [];

export function odd(what: string): readonly CarrierEvent[] {
  return [{ kind: "odd", what }];
}

/** A key that the caller has pressed; a digit that phones do not have is odd. */
export function digitEvent(digit: string, durationMs: number | undefined): readonly CarrierEvent[] {
  if (!/^[0-9*#A-Da-d]$/.test(digit)) return odd("a key that phones do not have");
  return [{ kind: "dtmf", digit: digit.toUpperCase(), ...(durationMs === undefined ? {} : { durationMs }) }];
}

/** The name of an event that is not known, fit for a log: nothing that could be a caller's words. */
export function knownName(event: string): string {
  return /^[A-Za-z][A-Za-z_:.]{0,31}$/.test(event) ? event : "(no name)";
}
