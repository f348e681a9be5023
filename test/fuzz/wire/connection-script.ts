/** What one connection of a crowd sends, by its number alone: the same number sends the same again. */
import { Mutator } from "../mutator.ts";
import { ConversationMutator, type Frames, type Message } from "./conversation-mutator.ts";
import type { Surface } from "./surfaces.ts";

/** A connection by its number, whole or some of it: what broke a surface is sent again so. */
export interface Selection {
  readonly connection: number;
  /** Numbers of its messages, in their order; null: all. */
  readonly messages: readonly number[] | null;
}

/** Spreads seeds of neighbours. */
const SPREAD = 0x9e3779b1;

export class ConnectionScript {
  readonly index: number;
  readonly #surface: Surface;
  readonly #mutator: Mutator;
  readonly #conversations: ConversationMutator;
  readonly #chosen: ReadonlySet<number> | null;
  #count = 0;

  constructor(surface: Surface, seed: number, { connection, messages }: Selection) {
    this.index = connection;
    this.#surface = surface;
    this.#mutator = new Mutator(seed + Math.imul(connection + 1, SPREAD), surface.words);
    this.#conversations = new ConversationMutator(this.#mutator);
    this.#chosen = messages === null ? null : new Set(messages);
  }

  /** How many messages it has made. */
  get count(): number {
    return this.#count;
  }

  /** The messages of its next conversation. */
  messages(): Buffer[] {
    return this.#next(({ bytes }) => bytes);
  }

  /** The same for a WebSocket. */
  frames(): Frames[] {
    return this.#next((message) => this.#conversations.frames(message));
  }

  #next<T>(formed: (message: Message) => T): T[] {
    // All are made, so that those that are sent are what they were.
    return this.#mutated()
      .map(formed)
      .filter(() => {
        const number = this.#count;
        this.#count += 1;
        return this.#chosen === null || this.#chosen.has(number);
      });
  }

  #mutated(): Message[] {
    const { others, conversation } = this.#surface;
    const mutator = this.#mutator;
    const good = this.#conversations.conversation(conversation(this.index), others);
    // Mostly one message alone: what is behind a fault that closes the connection is not read.
    const chosen = mutator.next(good.length);
    const isEach = mutator.next(4) === 0;
    return good.map((message, at) =>
      at === chosen || (isEach && mutator.next(2) === 0)
        ? this.#conversations.message(message, mutator.pick(others) ?? message)
        : message,
    );
  }
}
