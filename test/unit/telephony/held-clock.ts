import { FakeClock } from "../../helpers/fake-clock.ts";

/** A fake clock of a process that can be held up: what was due meanwhile runs late, all of it at the same time. */
export class HeldClock extends FakeClock {
  #heldUntilMs = 0;

  override nowMs(): number {
    return Math.max(super.nowMs(), this.#heldUntilMs);
  }

  holdUntil(atMs: number): void {
    this.#heldUntilMs = atMs;
    this.advance(atMs - super.nowMs());
  }
}
