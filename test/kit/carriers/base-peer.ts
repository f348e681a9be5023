/** What all fake carriers do alike: they have a link and marks; and what those do alike whose audio is binary. */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { type FakePeer, type PeerLink, PeerMarks } from "./peer.ts";

export abstract class BasePeer implements FakePeer {
  protected readonly link: PeerLink;
  protected readonly marks: PeerMarks;

  constructor(link: PeerLink) {
    this.link = link;
    this.marks = new PeerMarks(link, (name) => link.send(this.played(name)));
  }

  abstract opening(): readonly Wire[];
  abstract media(audio: Uint8Array): Wire;
  abstract digit(digit: string): Wire;
  abstract closing(): readonly Wire[];
  abstract take(message: Wire): void;
  /** What is sent when the player has come to a mark. */
  protected abstract played(name: string): Wire;

  close(): void {
    this.link.player.close();
  }

  /** Clears, where the marks that are taken away are reported as well. */
  protected clearAndAnswer(): void {
    for (const name of this.marks.clear()) this.link.send(this.played(name));
  }
}

/** Audio in binary messages both ways, all else in text; a call ends without a word. */
export abstract class BinaryPeer extends BasePeer {
  protected abstract takeText(message: string): void;
  protected abstract takeAudio(audio: Uint8Array): void;

  media(audio: Uint8Array): Wire {
    return audio;
  }

  closing(): readonly Wire[] {
    return [];
  }

  take(message: Wire): void {
    if (typeof message === "string") this.takeText(message);
    else this.takeAudio(message);
  }
}
