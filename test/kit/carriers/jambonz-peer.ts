/** jambonz's end of a call (listen with streaming bidirectionalAudio). */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { BinaryPeer } from "./base-peer.ts";
import { json } from "./json-peer.ts";
import { factsOf, hasOnly, isWhole, type Json, parseMessage } from "./peer.ts";

/**
 * jambonz `listen`: a sample of -1 is a mark to it; marks beyond 30 are dropped without a word; those that clearMarks
 * finds are reported as cleared.
 */
export class JambonzPeer extends BinaryPeer {
  static readonly MAX_MARKS = 30;
  /** Marks that clearMarks has found in the buffer: reported when killAudio empties it. */
  #isClearing = false;

  opening(): readonly Wire[] {
    const { call } = this.link;
    return [
      json({
        sampleRate: factsOf(call.callerFormat).sampleRate,
        mixType: "mono",
        callSid: call.callId,
        direction: "inbound",
        from: call.from,
        to: call.to,
        callStatus: "in-progress",
        ...call.parameters,
      }),
    ];
  }

  digit(digit: string): Wire {
    return json({ event: "dtmf", dtmf: digit, duration: "1600" });
  }

  protected takeText(message: string): void {
    const { link } = this;
    const parsed = parseMessage(link, message);
    if (parsed === null) return;
    if (parsed.type === "mark") {
      if (hasOnly(link, parsed, ["type", "data"]) && hasOnly(link, parsed.data, ["name"]))
        this.#mark(parsed.data);
      return;
    }
    if (!hasOnly(link, parsed, ["type"])) return;
    if (parsed.type === "killAudio") {
      this.clearAndAnswer();
      this.#isClearing = false;
    } else if (parsed.type === "clearMarks") {
      this.#isClearing = this.marks.size > 0;
    } else if (parsed.type !== "disconnect") {
      link.violate("a type that jambonz does not know");
    }
  }

  #mark(data: Json): void {
    if (this.marks.size >= JambonzPeer.MAX_MARKS) this.link.violate("more than 30 marks wait");
    else this.marks.add(data.name);
  }

  protected takeAudio(audio: Uint8Array): void {
    if (!isWhole(this.link, audio)) return;
    for (let at = 0; at < audio.length; at += 2) {
      if (audio[at] === 0xff && audio[at + 1] === 0xff) {
        this.link.violate("a sample of -1 is a mark");
        return;
      }
    }
    this.link.player.push(audio);
  }

  protected played(name: string): Wire {
    return json({ type: "mark", data: { name, event: this.#isClearing ? "cleared" : "playout" } });
  }
}
