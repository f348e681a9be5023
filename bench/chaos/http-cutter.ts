/** Finds where an HTTP answer in chunks can end early and look whole: between two chunks of its body. */

const LINE_FEED = 10;

export class HttpCutter {
  #state: "head" | "size" | "data" = "head";
  #line = "";
  /** Of the chunk's data and the line end behind it. */
  #left = 0;

  take(bytes: Buffer): void {
    this.takeToBoundary(bytes, bytes.length + 1);
  }

  /** Reads on; returns the first place from `from` on that lies between two chunks, null where none does. */
  takeToBoundary(bytes: Buffer, from: number): number | null {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.#state === "size" && this.#line === "" && at >= from) return at;
      this.#step(bytes[at] ?? 0);
    }
    return null;
  }

  #step(byte: number): void {
    if (this.#state === "data") {
      this.#left -= 1;
      if (this.#left === 0) this.#state = "size";
      return;
    }
    if (byte !== LINE_FEED) {
      this.#line += String.fromCharCode(byte);
      return;
    }
    const line = this.#line.trim();
    this.#line = "";
    if (this.#state === "head") {
      if (line === "") this.#state = "size";
      return;
    }
    this.#left = Number.parseInt(line, 16) + 2;
    this.#state = "data";
  }
}
