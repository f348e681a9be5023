/** What all sockets with contexts share: the bounds of a context, and every way to end. */
import type { GatewayError } from "../errors.ts";
import type { Dialect } from "../protocol/elevenlabs/server-messages.ts";
import { type Context, ContextSet } from "./context-set.ts";
import type { SocketOptions, SpeakingSocket } from "./ports.ts";

/** As in ContextSet. */
export interface ContextSocketOptions<T> extends SocketOptions {
  readonly dialect: Dialect;
  readonly voicesOf: (own: T) => readonly string[];
  readonly countsClosing: boolean;
}

/** The text of a context that no generation has taken yet. */
interface Unsaid {
  /** UTF-16 code units. */
  readonly chars: number;
}

/** What clients say. */
interface Said {
  /** Names of what nothing is done of. */
  readonly ignored: readonly string[];
}

/** `M`: what clients say. `T`: what is kept for each context besides. */
export abstract class ContextSocket<M extends Said, T extends { readonly buffer: Unsaid }>
  implements SpeakingSocket
{
  protected readonly contexts: ContextSet<T>;
  readonly #isMulti: boolean;

  constructor(options: ContextSocketOptions<T>) {
    this.#isMulti = options.isMulti;
    this.contexts = new ContextSet<T>({
      ...options,
      onIdle: (context) => this.finish(context),
      onOver: (context) => {
        for (const message of this.messagesAfter(context)) this.#take(message);
      },
    });
  }

  receive(json: string): void {
    try {
      const message = this.parse(json, this.#isMulti);
      this.contexts.noteIgnored(message.ignored);
      this.#take(message);
    } catch (thrown) {
      this.refuse(thrown);
    }
  }

  refuse(thrown: unknown): void {
    this.contexts.failWith(thrown, "");
  }

  drained(): void {
    this.contexts.pump();
  }

  closed(): void {
    this.contexts.abort();
  }

  expire(error: GatewayError): void {
    this.endSocket(error);
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

  /** The socket takes no more; it closes when all that waits has been said, with the error or as the client asked. */
  protected endSocket(error: GatewayError | null = null): void {
    this.contexts.endSocket(error);
    for (const context of [...this.contexts]) if (!context.isClosing) this.finish(context);
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
