/** A plain HTTP server that stands for the vendor: each test says what it answers. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Listening, listening } from "./listening.ts";

export type VendorHandler = (req: IncomingMessage, res: ServerResponse) => void;

/** Answers /v1/voices and /v1/models by itself, since the gateway asks for them; the rest is the test's. */
export async function vendor(handler: VendorHandler): Promise<Listening> {
  const server = createServer((req, res) => {
    if (req.method === "GET" && /^\/v\d\/(voices|models)$/.test(req.url ?? "")) {
      res.setHeader("content-type", "application/json").end('{"voices":[{"voice_id":"v","name":"V"}]}');
      return;
    }
    handler(req, res);
  });
  return listening(server);
}

export async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
