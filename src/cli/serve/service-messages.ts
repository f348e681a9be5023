/** What the gateway and its embedded speech service send each other over IPC. Some other program could be at the other end. */
import { ERRORS, type ErrorCode } from "../../errors.ts";

/** From the child: one of the first two once, then a pong for each ping. */
export type ServiceReport =
  | { readonly type: "listening"; readonly url: string; readonly port: number }
  | { readonly type: "failed"; readonly code: ErrorCode; readonly message: string }
  | { readonly type: "pong" };

/** From the gateway: the key that its requests have, at once, and later the pings. */
export type ParentMessage = { readonly type: "key"; readonly key: string } | { readonly type: "ping" };

export function isReport(message: unknown): message is ServiceReport {
  if (typeof message !== "object" || message === null || !("type" in message)) return false;
  switch (message.type) {
    case "pong":
      return true;
    case "listening":
      return (
        "url" in message &&
        typeof message.url === "string" &&
        "port" in message &&
        typeof message.port === "number"
      );
    case "failed":
      return (
        "code" in message &&
        typeof message.code === "string" &&
        Object.hasOwn(ERRORS, message.code) &&
        "message" in message &&
        typeof message.message === "string"
      );
    default:
      return false;
  }
}

export function isParentMessage(message: unknown): message is ParentMessage {
  if (typeof message !== "object" || message === null || !("type" in message)) return false;
  if (message.type === "ping") return true;
  return message.type === "key" && "key" in message && typeof message.key === "string";
}
