/** Who hears each Opus rendition of a session: an encoder is taken for it, which is counted once for each of them. */

/** Whose number of renditions it is. */
export interface OpusAccount {
  /** The same one on all connections of one client. */
  readonly id: string;
  /** They hear one more: gives what ends it (idempotent). Throws listener_limit. */
  begin(): () => void;
}

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
