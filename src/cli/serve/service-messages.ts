/** What the gateway and its embedded speech service send each other over IPC; one forks the other, so neither is checked. */
import type { ErrorCode } from "../../errors.ts";

/** From the child: one of the first two once, then a pong for each ping. */
export type ServiceReport =
  | { readonly type: "listening"; readonly url: string; readonly port: number }
  | { readonly type: "failed"; readonly code: ErrorCode; readonly message: string }
  | { readonly type: "pong" };

/** From the gateway: the key that its requests have, at once, and later the pings. */
export type ParentMessage = { readonly type: "key"; readonly key: string } | { readonly type: "ping" };
