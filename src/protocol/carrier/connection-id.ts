/** An id for carriers that give a call none. */
import { randomUUID } from "node:crypto";
import type { CarrierHello } from "./carrier.ts";

/** The connection's `Sec-WebSocket-Key` in hexadecimal, which is new for each connection (RFC 6455 section 4.1). */
export function connectionId(hello: CarrierHello): string {
  const key = hello.headers.get("sec-websocket-key") ?? "";
  return Buffer.from(key, "base64").toString("hex") || randomUUID();
}
