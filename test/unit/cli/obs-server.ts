/**
 * The server's side of obs-websocket 5 as its protocol document has it, with the one request that captions need; whoever
 * breaks its rules is closed with its codes. `test/clients/obs.test.ts` holds it against the client of obs-websocket-js.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

export const OBS_PASSWORD = "open sesame";

const RPC_VERSION = 1;
/** https://github.com/obsproject/obs-websocket, docs/generated/protocol.md: WebSocketCloseCode. */
const CLOSE = {
  decodeError: 4002,
  unknownOpCode: 4006,
  notIdentified: 4007,
  alreadyIdentified: 4008,
  authenticationFailed: 4009,
  unsupportedRpcVersion: 4010,
} as const;
/** RequestStatus. */
const STATUS = { unknownRequestType: 204, missingRequestField: 300 } as const;

export interface RequestStatus {
  readonly result: boolean;
  readonly code: number;
}

/** What a client said. */
export interface ObsSaid {
  readonly op: number;
  readonly d: Readonly<Record<string, unknown>>;
}

export interface ObsServer extends AsyncDisposable {
  readonly url: URL;
  /** Captions that were taken. */
  readonly shownTexts: readonly string[];
  /** All that any client said, in order. */
  readonly said: readonly ObsSaid[];
  connections(): number;
}

export interface ObsServerOptions {
  /** Empty: it asks for none. */
  readonly password?: string;
}

/** `statusOf`: what becomes of a caption; "close" breaks the connection. */
export async function startObs(
  statusOf: (text: string) => RequestStatus | "close",
  { password = OBS_PASSWORD }: ObsServerOptions = {},
): Promise<ObsServer> {
  const server = new WebSocketServer({
    port: 0,
    host: "127.0.0.1",
    handleProtocols: (offered) => (offered.has("obswebsocket.json") ? "obswebsocket.json" : false),
  });
  await once(server, "listening");
  const shownTexts: string[] = [];
  const said: ObsSaid[] = [];
  let connections = 0;
  server.on("connection", (socket) => {
    connections += 1;
    const challenge = `chall${connections}=`;
    serveClient(socket, { challenge, salt: "sal=", password, said, shownTexts, statusOf });
  });
  return {
    url: new URL(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`),
    shownTexts,
    said,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      for (const client of server.clients) client.terminate();
      server.close();
      await once(server, "close");
    },
  };
}

interface Serving {
  readonly challenge: string;
  readonly salt: string;
  readonly password: string;
  readonly said: ObsSaid[];
  readonly shownTexts: string[];
  readonly statusOf: (text: string) => RequestStatus | "close";
}

function serveClient(socket: WebSocket, serving: Serving): void {
  const { challenge, salt, password, said } = serving;
  const send = (op: number, d: object): void => socket.send(JSON.stringify({ op, d }));
  let isIdentified = false;
  send(0, {
    obsWebSocketVersion: "5.4.2",
    rpcVersion: RPC_VERSION,
    ...(password === "" ? {} : { authentication: { challenge, salt } }),
  });
  socket.on("message", (data, isBinary) => {
    const message = isBinary ? null : readMessage(String(data));
    if (message === null) {
      socket.close(CLOSE.decodeError);
      return;
    }
    said.push(message);
    const { op, d } = message;
    if (op === 1) {
      const refusal = isIdentified ? CLOSE.alreadyIdentified : refusalOf(d, serving);
      if (refusal !== null) {
        socket.close(refusal);
        return;
      }
      isIdentified = true;
      send(2, { negotiatedRpcVersion: RPC_VERSION });
    } else if (op !== 6) socket.close(CLOSE.unknownOpCode);
    else if (!isIdentified) socket.close(CLOSE.notIdentified);
    else answer(d, serving, { send, cut: () => socket.terminate() });
  });
}

/** The close code for a client that may not come in. */
function refusalOf(d: ObsSaid["d"], { password, salt, challenge }: Serving): number | null {
  if (d.rpcVersion !== RPC_VERSION) return CLOSE.unsupportedRpcVersion;
  const hash = (text: string): string => createHash("sha256").update(text).digest("base64");
  const expected = hash(hash(password + salt) + challenge);
  return password === "" || d.authentication === expected ? null : CLOSE.authenticationFailed;
}

function answer(
  { requestType, requestId, requestData }: ObsSaid["d"],
  { statusOf, shownTexts }: Serving,
  { send, cut }: { readonly send: (op: number, d: object) => void; readonly cut: () => void },
): void {
  const text = (requestData as { captionText?: unknown } | undefined)?.captionText;
  const status =
    requestType !== "SendStreamCaption"
      ? { result: false, code: STATUS.unknownRequestType }
      : typeof text !== "string"
        ? { result: false, code: STATUS.missingRequestField }
        : statusOf(text);
  if (status === "close") {
    cut();
    return;
  }
  if (status.result && typeof text === "string") shownTexts.push(text);
  send(7, { requestType, requestId, requestStatus: status });
}

function readMessage(json: string): ObsSaid | null {
  try {
    const { op, d } = JSON.parse(json) as Partial<ObsSaid>;
    return op === undefined || d === undefined ? null : { op, d };
  } catch {
    return null;
  }
}
