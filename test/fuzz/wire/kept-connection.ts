/** An HTTP connection that is kept for the next request as long as both sides know where an answer ends. */
import { connect, type Socket } from "node:net";

/** A request whose rest the server waits for is cut off, ms. */
const READ_MS = 400;
/** A whole one is answered, on a busy machine late. */
const ANSWER_MS = 10_000;
/** And a stream of audio or events, so long behind its head. */
const STREAM_MS = 20;
const MAX_READ_BYTES = 65_536;
const HEAD_END = "\r\n\r\n";
const CHUNKS_END = "0\r\n\r\n";

export class KeptConnection implements Disposable {
  readonly #port: number;
  #socket: Socket | null = null;
  #answer = "";
  /** The request under way asks for a head alone. */
  #isHead = false;
  #finish: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStream = false;

  constructor(port: number) {
    this.#port = port;
  }

  /** The answer as latin1, as far as it came; empty: cut off without one. `isKept`: its end is known, and the next may follow. */
  async exchange(request: Buffer, isKept: boolean): Promise<string> {
    const socket = this.#socket ?? this.#opened();
    this.#answer = "";
    this.#isHead = request.subarray(0, 5).toString("latin1") === "HEAD ";
    const finished = new Promise<void>((resolve) => {
      this.#finish = resolve;
    });
    this.#isStream = false;
    socket.write(request);
    this.#cutOffIn(isKept ? ANSWER_MS : READ_MS, socket);
    await finished;
    clearTimeout(this.#timer);
    const isWhole = endOf(this.#answer, this.#isHead) === this.#answer.length;
    if (!isKept || !isWhole || /^connection: close/im.test(headOf(this.#answer))) this.#close();
    return this.#answer;
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #opened(): Socket {
    const socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
    socket.on("error", () => socket.destroy());
    socket.on("data", (data) => this.#take(socket, data));
    socket.on("close", () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#finish();
    });
    this.#socket = socket;
    return socket;
  }

  #take(socket: Socket, data: Buffer): void {
    if (this.#socket !== socket) return;
    this.#answer += data.toString("latin1");
    const end = endOf(this.#answer, this.#isHead);
    if (end !== null && this.#answer.length >= end) this.#finish();
    else if (this.#answer.length > MAX_READ_BYTES) socket.destroy();
    else if (!this.#isStream && /^content-type: (?:audio|text\/event-stream)/im.test(headOf(this.#answer))) {
      this.#isStream = true;
      this.#cutOffIn(STREAM_MS, socket);
    }
  }

  #cutOffIn(ms: number, socket: Socket): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => socket.destroy(), ms);
  }

  #close(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.destroy();
  }
}

function headOf(answer: string): string {
  const end = answer.indexOf(HEAD_END);
  return end < 0 ? "" : answer.slice(0, end);
}

/** Where the answer ends; null: that is not known yet, or only by the end of the connection. */
function endOf(answer: string, isHead: boolean): number | null {
  const head = headOf(answer);
  if (head === "") return null;
  const begin = head.length + HEAD_END.length;
  if (/^HTTP\/1\.1 100/.test(head)) {
    const end = endOf(answer.slice(begin), isHead);
    return end === null ? null : begin + end;
  }
  if (isHead || /^HTTP\/1\.1 (?:204|304)/.test(head)) return begin;
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  if (length !== undefined) return begin + Number(length);
  if (!/^transfer-encoding: chunked/im.test(head)) return null;
  return answer.endsWith(CHUNKS_END) ? answer.length : null;
}
