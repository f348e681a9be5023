/**
 * What the gateway, or a proxy in front of it, answers in the place of a WebSocket. The standard's class shows nothing of
 * that answer; the one of the package `ws` does.
 */
import type { ErrorBody } from "../protocol/events.ts";
import { clientError, VoicewireError } from "./client-error.ts";
import type { WebSocketLike } from "./socket.ts";

/** The part of Node's IncomingMessage that is used. */
interface HttpAnswer {
  readonly statusCode?: number;
  setEncoding(encoding: "utf8"): void;
  on(event: "data", listener: (text: string) => void): void;
  on(event: "end" | "close", listener: () => void): void;
}

interface AnswerShowingSocket {
  on(event: "unexpected-response", listener: (request: unknown, answer: HttpAnswer) => void): void;
}

/** An error of the gateway has some hundreds. */
const MAX_BODY_CHARS = 16_384;

/** Reports what a refused upgrade was answered with; whether this class of sockets shows it. The socket stays to be closed. */
export function watchRefusal(socket: WebSocketLike, report: (error: VoicewireError) => void): boolean {
  if (!showsAnswers(socket)) return false;
  socket.on("unexpected-response", (_request, answer) => {
    let body = "";
    let isOver = false;
    const finish = (): void => {
      if (isOver) return;
      isOver = true;
      report(refusalOf(answer.statusCode ?? 0, body));
    };
    answer.setEncoding("utf8");
    answer.on("data", (text) => {
      body += text.slice(0, MAX_BODY_CHARS - body.length);
      if (body.length === MAX_BODY_CHARS) finish();
    });
    answer.on("end", finish);
    // Without its end.
    answer.on("close", finish);
  });
  return true;
}

function showsAnswers(
  socket: WebSocketLike | (WebSocketLike & AnswerShowingSocket),
): socket is WebSocketLike & AnswerShowingSocket {
  return "on" in socket && typeof socket.on === "function";
}

/** The gateway's own error, or the status where something else answers there. */
function refusalOf(status: number, body: string): VoicewireError {
  const unexplained = () =>
    clientError("connect_failed", `Connection: HTTP ${status} in place of a WebSocket`);
  try {
    const { error } = JSON.parse(body) as { readonly error?: ErrorBody };
    return typeof error?.code === "string" ? new VoicewireError(error) : unexplained();
  } catch {
    // No JSON: a proxy, or another server.
    return unexplained();
  }
}
