/** What events say of a call, and which session it joins. */
import type { CallStart, CallVia, CarrierDialect, CarrierHello } from "../protocol/carrier/carrier.ts";
import type { CallEvent } from "../protocol/events.ts";

/** What `call` says of a call, whether it begins or ends. */
export type CallFacts = Omit<CallEvent, "seq" | "at_ms" | "type" | "state" | "reason">;

const MAX_SESSION_CHARS = 64;
/** Bounds of what events say of a call. */
const MAX_PARAMETERS = 32;
const MAX_FACT_CHARS = 1024;
const MAX_CALL_ID_CHARS = 256;

/** Something that the application has handed over: with the call, else in the URL. */
export function parameterOf(call: CallStart, name: string, hello: CarrierHello): string | undefined {
  return Object.hasOwn(call.parameters, name) ? call.parameters[name] : hello.query.get(name);
}

/** The application's word for it, else the call's id, with the carrier's name before it and what ids can't hold as `-`. */
export function sessionIdOf(dialect: CarrierDialect, call: CallStart, hello: CarrierHello): string {
  const wanted = parameterOf(call, "session", hello);
  if (wanted !== undefined && wanted !== "") return wanted;
  return `${dialect.name}-${call.callId}`.replace(/[^A-Za-z0-9_.-]/g, "-").slice(0, MAX_SESSION_CHARS);
}

/** `listenerId`: of the call among the session's connections. */
export function factsOf(carrier: CallVia, call: CallStart, listenerId: string): CallFacts {
  const parameters = Object.entries(call.parameters).slice(0, MAX_PARAMETERS);
  const cut = (value: string): string => value.slice(0, MAX_FACT_CHARS);
  return {
    call_id: call.callId.slice(0, MAX_CALL_ID_CHARS),
    carrier,
    listener_id: listenerId,
    ...(call.from === undefined ? {} : { from: cut(call.from) }),
    ...(call.to === undefined ? {} : { to: cut(call.to) }),
    parameters: Object.fromEntries(parameters.map(([name, value]) => [cut(name), cut(value)])),
    caller_format: call.callerFormat,
  };
}
