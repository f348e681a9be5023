/** WebSocket close codes of RFC 6455 section 7.4.1; those of the gateway's errors are in errors.ts. */

export const NORMAL_CLOSURE = 1000;
export const GOING_AWAY = 1001;
/** Never sent: the close frame had no code. */
export const NO_CODE = 1005;
/** Never sent: the connection ended without a close frame. */
export const ABNORMAL_CLOSURE = 1006;
export const POLICY_VIOLATION = 1008;
export const INTERNAL_ERROR = 1011;
