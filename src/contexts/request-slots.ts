/** Upstream requests of one socket: so many are open at once, whatever its contexts ask for. */
export class RequestSlots {
  readonly #max: number;
  readonly #onRoom: () => void;
  #taken = 0;

  /** `onRoom`: one that was taken is free again. */
  constructor(max: number, onRoom: () => void) {
    this.#max = max;
    this.#onRoom = onRoom;
  }

  /** What gives the slot back (once, however often it is called), or null where all are taken. */
  take(): (() => void) | null {
    if (this.#taken >= this.#max) return null;
    this.#taken += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#taken -= 1;
      this.#onRoom();
    };
  }
}
