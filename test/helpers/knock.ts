/** Tries a WebSocket's upgrade: what it is answered with. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import WebSocket from "ws";

export interface Offer {
  readonly headers?: Record<string, string>;
  readonly protocols?: string[];
}

/** Status and error code of a refused upgrade, or 101; the socket is closed again. */
export async function knock(url: string, { headers = {}, protocols = [] }: Offer = {}) {
  const socket = new WebSocket(url, protocols, { headers });
  socket.on("error", () => undefined);
  const open = once(socket, "open").then(() => ({ status: 101, code: "" }));
  const refused = once(socket, "unexpected-response").then(async ([, answer]) => {
    let text = "";
    for await (const piece of (answer as IncomingMessage).setEncoding("utf8")) text += piece;
    const { error } = JSON.parse(text) as { error: { code: string } };
    return { status: (answer as IncomingMessage).statusCode ?? 0, code: error.code };
  });
  const result = await Promise.race([open, refused]);
  socket.terminate();
  return result;
}

/** The status of a refused upgrade, or 101; the socket is closed again. */
export async function upgradeStatus(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const socket = new WebSocket(url, { headers });
  socket.on("error", () => undefined);
  const open = once(socket, "open").then(() => 101);
  const refused = once(socket, "unexpected-response").then(([, answer]) => {
    (answer as IncomingMessage).resume();
    return (answer as IncomingMessage).statusCode ?? 0;
  });
  const status = await Promise.race([open, refused]);
  socket.terminate();
  return status;
}
