/** A WebSocket client's side of the wire: the request that upgrades, and messages (RFC 6455). */
import { randomBytes } from "node:crypto";

export const OPCODE_TEXT = 1;

export interface UpgradeRequest {
  readonly port: number;
  readonly path: string;
  /** Key or token; none where it is left out. */
  readonly credential?: string | undefined;
}

export function upgradeRequest({ port, path, credential }: UpgradeRequest): string {
  const authorization = credential === undefined ? "" : `Authorization: Bearer ${credential}\r\n`;
  return (
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\n` +
    `Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n${authorization}` +
    `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}\r\n\r\n`
  );
}

/** Client messages must be masked (RFC 6455 section 5.3); a key of zeros leaves the bytes as they are. At most 65,535 bytes. */
export function clientMessage(opcode: number, payload: Buffer): Buffer {
  const isLong = payload.length > 125;
  const header = Buffer.alloc(isLong ? 8 : 6);
  header[0] = 0x80 | opcode;
  header[1] = 0x80 | (isLong ? 126 : payload.length);
  if (isLong) header.writeUInt16BE(payload.length, 2);
  return Buffer.concat([header, payload]);
}
