/** Which trace something belongs to, as `traceparent` says it (W3C Trace Context, section 3.2). */
export interface TraceContext {
  /** 32 hex digits, not all 0. */
  readonly traceId: string;
  /** 16 hex digits, not all 0. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Later versions may say more behind the flags. */
export const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED_FLAG = 1;

/** null: it can't be read, and a trace of its own begins. */
export function readTraceparent(value: string | undefined): TraceContext | null {
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(value ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  if (version === "00" && more !== undefined) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) !== 0 };
}

export function writeTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}
