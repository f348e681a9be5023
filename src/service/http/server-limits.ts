/**
 * How long a request may take to come in, and how many connections there may be. Node's own time-out looks after requests;
 * uploads take as long as their watch lets them (media/upload.ts), so it must leave those alone.
 */
import { type Server, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyHttpOptions, FastifyInstance } from "fastify";
import { ApiError } from "../api-error.ts";

export interface ServerLimits {
  /** For the head of a request, and for all of it. */
  readonly requestTimeoutMs: number;
  readonly maxConnections: number;
}

export const SERVER_LIMITS: ServerLimits = { requestTimeoutMs: 30_000, maxConnections: 2048 };

/** How often requests that take too long are looked for: they may take so much longer. */
const CHECK_EVERY_MS = 5000;

export class RequestTimeout {
  readonly #limits: ServerLimits;
  /** Those whose request is an upload that is being read or answered. */
  readonly #uploading = new Set<Socket>();

  constructor(limits: ServerLimits) {
    this.#limits = limits;
  }

  /** What the server is made with. */
  get options() {
    const { requestTimeoutMs } = this.#limits;
    return {
      requestTimeout: requestTimeoutMs,
      http: {
        // Node takes the longer of both for the whole request.
        headersTimeout: requestTimeoutMs,
        connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, requestTimeoutMs),
      },
      clientErrorHandler: (error, socket) => {
        if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && this.#uploading.has(socket)) return;
        refuseConnection(error.code, socket);
      },
    } satisfies FastifyHttpOptions<Server>;
  }

  watch(app: FastifyInstance): void {
    app.server.maxConnections = this.#limits.maxConnections;
    app.addHook("preParsing", async ({ raw, routeOptions }, reply) => {
      if (routeOptions.config.operation?.body?.kind !== "form") return;
      const { socket } = raw;
      this.#uploading.add(socket);
      reply.raw.once("close", () => this.#uploading.delete(socket));
    });
  }
}

/** What Node's parser refuses, and what comes too slowly. There is no request yet, so the answer is written by hand. */
function refuseConnection(code: string, socket: Socket): void {
  // Reset by the client: nobody is there any more.
  if (code === "ECONNRESET" || socket.destroyed) return;
  const status = code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
  const reason = STATUS_CODES[status] ?? "";
  const body = new ApiError(status, reason).json("");
  const head = `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  if (socket.writable) socket.write(`${head}connection: close\r\n\r\n${body}`);
  socket.destroy();
}
