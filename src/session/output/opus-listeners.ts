/** Who hears each Opus rendition of a session: of a client its encoder counts once, on however many connections it is heard. */
import type { OpusAccount } from "../payer.ts";

interface Hearing {
  connections: number;
  readonly end: () => void;
}

export class OpusListeners {
  /** By rendition and account. */
  readonly #hearing = new Map<string, Hearing>();

  /** One more connection hears the rendition. Gives what ends that (idempotent). Throws listener_limit. */
  enter(rendition: string, account: OpusAccount): () => void {
    const key = `${rendition} ${account.id}`;
    const hearing = this.#hearing.get(key) ?? { connections: 0, end: account.begin() };
    hearing.connections += 1;
    this.#hearing.set(key, hearing);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      hearing.connections -= 1;
      if (hearing.connections > 0) return;
      this.#hearing.delete(key);
      hearing.end();
    };
  }

  /** Idempotent. */
  close(): void {
    for (const { end } of this.#hearing.values()) end();
    this.#hearing.clear();
  }
}
