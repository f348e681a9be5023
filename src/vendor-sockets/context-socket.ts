/** What all sockets with contexts share: the key before the first message, the bounds of a context, and every way to end. */
import type { Dialect } from "../protocol/elevenlabs/server-messages.ts";
import type { Credentials } from "../protocol/elevenlabs/socket-settings.ts";
import { type Context, ContextSet } from "./context-set.ts";
import { KeyGate, refusedKey } from "./key-gate.ts";
import type { SocketOptions, VendorSocket } from "./ports.ts";

export interface ContextSocketOptions extends SocketOptions {
  readonly dialect: Dialect;
  /** As in ContextSet. */
  readonly voiceId: string;
  readonly countsClosing: boolean;
}

/** The text of a context that no generation has taken yet. */
interface Unsaid {
  /** UTF-16 code units. */
  readonly chars: number;
}

/** `M`: what clients say. `T`: what is kept for each context besides. */
export abstract class ContextSocket<
  M extends { readonly credentials: Credentials },
  T extends { readonly buffer: Unsaid },
> implements VendorSocket
{
  protected readonly contexts: ContextSet<T>;
  readonly #isMulti: boolean;
  readonly #gate: KeyGate<M>;

  constructor(options: ContextSocketOptions) {
    this.#isMulti = options.isMulti;
    this.contexts = new ContextSet<T>({
      ...options,
      onIdle: (context) => this.finish(context),
      onOver: (context) => {
        for (const message of this.messagesAfter(context)) this.#take(message);
      },
    });
    this.#gate = new KeyGate({
      check: options.deps.checkKey,
      credentials: options.credentials,
      onMessage: (message) => this.#take(message),
      onRefused: (reason) => this.contexts.fail(refusedKey(reason), ""),
      onError: (thrown) => this.contexts.failWith(thrown, ""),
    });
  }

  receive(json: string): void {
    try {
      this.#gate.push(this.parse(json, this.#isMulti));
    } catch (thrown) {
      this.refuse(thrown);
    }
  }

  refuse(thrown: unknown): void {
    this.#gate.close();
    this.contexts.failWith(thrown, "");
  }

  drained(): void {
    this.contexts.pump();
  }

  closed(): void {
    this.#gate.close();
    this.contexts.abort();
  }

  /** Throws GatewayError. */
  protected abstract parse(json: string, isMulti: boolean): M;
  /** A message of a client that may speak; not called once the socket takes nothing more. */
  protected abstract handle(message: M): void;
  /** Everything that waits in the context's buffer becomes generations. */
  protected abstract sayAll(context: Context<T>): void;
  /** What came for a context that was closing, and comes next now that it is over. */
  protected abstract messagesAfter(context: Context<T>): readonly M[];

  /** What waits is said, and then it is over. */
  protected finish(context: Context<T>): void {
    this.sayAll(context);
    this.contexts.close(context);
  }

  /** The socket takes no more; it closes when all that waits has been said. */
  protected endSocket(): void {
    // Its contexts first: one that has nothing to say is over at once, and the last one closes the socket.
    const contexts = [...this.contexts];
    this.contexts.endSocket();
    for (const context of contexts) if (!context.isClosing) this.finish(context);
  }

  /** Whether a context is within its bounds; false: it is not, and the socket was closed for it. */
  protected checkBounds({ id, speech, own }: Context<T>): boolean {
    const overflow = speech.findOverflow(own.buffer.chars);
    if (overflow !== null) this.contexts.failWith(overflow, id);
    return overflow === null;
  }

  #take(message: M): void {
    if (!this.contexts.isEnding) this.handle(message);
  }
}
