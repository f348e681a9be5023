/** What one connection is refused, in the audit log: whoever sends a refused command again and again fills no disk. */
import { type Audit, type Refusal, reasonOf } from "./audit.ts";

export class ConnectionAudit {
  readonly #audit: Audit;
  /** The first one of each command and reason, and how often it came again. */
  readonly #refusals = new Map<string, { readonly refusal: Refusal; again: number }>();

  constructor(audit: Audit) {
    this.#audit = audit;
  }

  refused(refusal: Refusal): void {
    const kind = `${refusal.command ?? ""} ${reasonOf(refusal.thrown)}`;
    const known = this.#refusals.get(kind);
    if (known === undefined) {
      this.#refusals.set(kind, { refusal, again: 0 });
      this.#audit.refused(refusal);
      return;
    }
    known.again += 1;
    this.#audit.count(refusal);
  }

  /** Idempotent. */
  close(): void {
    for (const { refusal, again } of this.#refusals.values()) {
      if (again > 0) this.#audit.refusedAgain(refusal, again);
    }
    this.#refusals.clear();
  }
}
