/** An HTTP connection that is kept for the next request as long as both sides know where an answer ends. */
import { connect, type Socket } from "node:net";

/** Who has no answer by then waits for one, and is not in the way of others, ms: a whole request, and another one. */
const PATIENCE_MS = 1000;
const DOUBT_MS = 25;
/** A request whose rest the server waits for is cut off, ms. */
const READ_MS = 400;
/** A whole one is answered, on a busy machine late. */
const ANSWER_MS = 10_000;
/** And a stream of audio, events or captions, so long behind its head. */
const STREAM_MS = 20;
const MAX_READ_BYTES = 65_536;
const HEAD_END = "\r\n\r\n";
const CHUNKS_END = "0\r\n\r\n";
const STREAMED = /^content-type: (?:audio|text\/event-stream|text\/vtt|application\/x-subrip)/im;

/** What was read is text before the next socket is read: one memory is enough for all of them. */
const readMemory = Buffer.alloc(MAX_READ_BYTES);

export class KeptConnection implements Disposable {
  readonly #port: number;
  #socket: Socket | null = null;
  #answer = "";
  /** Behind its head; 0: that has not come yet. */
  #bodyAt = 0;
  /** Where the answer ends; null: that is not known yet, or only by the end of the connection. */
  #end: number | null = null;
  #isChunked = false;
  /** The request under way asks for a head alone. */
  #isHead = false;
  #finish: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /**
   * The answer as latin1, as far as it came; empty: cut off without one. `isKept`: its end is known, and the next may follow.
   * `waits`: called once, where the answer's end does not come soon.
   */
  async exchange(request: Buffer, isKept: boolean, waits: () => void = () => undefined): Promise<string> {
    const socket = this.#socket ?? this.#opened();
    this.#answer = "";
    this.#bodyAt = 0;
    this.#end = null;
    this.#isChunked = false;
    this.#isHead = request.subarray(0, 5).toString("latin1") === "HEAD ";
    const finished = new Promise<void>((resolve) => {
      this.#finish = resolve;
    });
    socket.write(request);
    this.#timer = setTimeout(
      () => {
        this.#cutOffIn(isKept ? ANSWER_MS : READ_MS, socket);
        waits();
      },
      isKept ? PATIENCE_MS : DOUBT_MS,
    );
    await finished;
    clearTimeout(this.#timer);
    const isWhole = this.#end === this.#answer.length;
    if (!isKept || !isWhole || /^connection: close/im.test(this.#answer.slice(0, this.#bodyAt)))
      this.#close();
    return this.#answer;
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #opened(): Socket {
    const socket: Socket = connect({
      port: this.#port,
      host: "127.0.0.1",
      noDelay: true,
      onread: {
        buffer: readMemory,
        callback: (bytes) => {
          this.#take(socket, readMemory.toString("latin1", 0, bytes));
          return true;
        },
      },
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#finish();
    });
    this.#socket = socket;
    return socket;
  }

  #take(socket: Socket, text: string): void {
    if (this.#socket !== socket) return;
    this.#answer += text;
    if (this.#bodyAt === 0) this.#readHead(0, socket);
    if (this.#isChunked && this.#answer.endsWith(CHUNKS_END)) this.#end = this.#answer.length;
    if (this.#end !== null && this.#answer.length >= this.#end) this.#finish();
    else if (this.#answer.length > MAX_READ_BYTES) socket.destroy();
  }

  #readHead(from: number, socket: Socket): void {
    const end = this.#answer.indexOf(HEAD_END, from);
    if (end < 0) return;
    const at = end + HEAD_END.length;
    const head = this.#answer.slice(from, at);
    if (head.startsWith("HTTP/1.1 100")) {
      this.#readHead(at, socket);
      return;
    }
    this.#bodyAt = at;
    const length = /^content-length: (\d+)/im.exec(head)?.[1];
    if (this.#isHead || /^HTTP\/1\.1 (?:204|304)/.test(head)) this.#end = at;
    else if (length !== undefined) this.#end = at + Number(length);
    else {
      this.#isChunked = /^transfer-encoding: chunked/im.test(head);
      if (STREAMED.test(head)) this.#cutOffIn(STREAM_MS, socket);
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
