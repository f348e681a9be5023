/** A plain HTTP server that stands for the vendor: each test says what it answers. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type VendorHandler = (req: IncomingMessage, res: ServerResponse) => void;

export interface ScriptedVendor extends AsyncDisposable {
  readonly url: string;
}

/** Answers /v1/voices and /v1/models by itself, since the gateway asks for them; the rest is the test's. */
export async function vendor(handler: VendorHandler): Promise<ScriptedVendor> {
  const server = createServer((req, res) => {
    if (req.method === "GET" && /^\/v\d\/(voices|models)$/.test(req.url ?? "")) {
      res.setHeader("content-type", "application/json").end('{"voices":[{"voice_id":"v","name":"V"}]}');
      return;
    }
    handler(req, res);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
