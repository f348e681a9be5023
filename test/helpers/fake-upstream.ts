/**
 * A speech service that does what a test's script says: a real HTTP server on a free port of loopback, with delays, odd
 * splits, stalls, resets and refusals, that remembers what it was asked and how far it came.
 *
 *   await using upstream = await startFakeUpstream();                    // works: speaks every text as a tone
 *   upstream.use(() => refusal(429, "too_many_concurrent_requests"));    // from the next request on
 *   upstream.use((request) => speechAnswer(speechFor(request), { isTimed: isTimed(request), tail: ["reset"] }));
 */
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { type FakeReaction, type FakeRequest, type FakeScript, serve } from "./fake-answer.ts";
import { refusal, speaking } from "./fake-scripts.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./test-certificate.ts";
import { ToneFormatError } from "./tone-speech.ts";

export type { FakeReaction, FakeRequest, FakeScript, FakeStep } from "./fake-answer.ts";
export {
  FAKE_VOICES,
  isTimed,
  jsonAnswer,
  refusal,
  speaking,
  speechAnswer,
  speechFor,
} from "./fake-scripts.ts";
export { ndjsonSpeech } from "./tone-speech.ts";

export interface FakeUpstream extends AsyncDisposable {
  readonly url: string;
  /** In the order they came. */
  readonly requests: readonly FakeRequest[];
  /** Connections that were opened so far, and that stand now. */
  readonly connections: { readonly opened: number; readonly open: number };
  /** From the next request on. */
  use(script: FakeScript): void;
  /** Destroys every connection and stops listening, so that the port refuses. Idempotent. */
  close(): Promise<void>;
}

export interface FakeUpstreamOptions {
  /** For one that comes back where another was; default a free one. */
  readonly port?: number;
  /** Over TLS; who connects has to trust the test's certificate. */
  readonly isTls?: boolean;
}

/** Without a script it speaks: see `speaking`. */
export async function startFakeUpstream(
  script: FakeScript = speaking(),
  options: FakeUpstreamOptions = {},
): Promise<FakeUpstream> {
  const requests: FakeRequest[] = [];
  const connections = { opened: 0, open: 0 };
  let current = script;
  const listener: RequestListener = (incoming, response) => {
    void serve(incoming, response, (request) => answered(() => current(request, requests.push(request) - 1)));
  };
  const server =
    options.isTls === true
      ? createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, listener)
      : createServer(listener);
  server.on("connection", (socket: Socket) => {
    connections.opened += 1;
    connections.open += 1;
    socket.setNoDelay(true);
    socket.on("close", () => {
      connections.open -= 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return {
    url: options.isTls === true ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    requests,
    connections,
    use: (next) => {
      current = next;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** What the script says; a format that it can't speak in is refused as the vendor does. */
async function answered(react: () => FakeReaction | Promise<FakeReaction>): Promise<FakeReaction> {
  try {
    return await react();
  } catch (thrown) {
    if (!(thrown instanceof ToneFormatError)) throw thrown;
    return refusal(422, "invalid_output_format", { message: thrown.message });
  }
}
