/** Vonage's end of a call (Voice API WebSocket). */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { BinaryPeer } from "./base-peer.ts";
import { json } from "./json-peer.ts";
import { factsOf, hasOnly, isJson, parseMessage } from "./peer.ts";

/** Takes messages of exactly 20 ms; never answers a notify that a clear has taken away. */
export class VonagePeer extends BinaryPeer {
  static readonly MAX_MESSAGES = 3072;

  opening(): readonly Wire[] {
    const { format, parameters, callId } = this.link.call;
    const contentType = `audio/l16;rate=${factsOf(format).sampleRate}`;
    return [
      json({
        event: "websocket:connected",
        "content-type": contentType,
        ...parameters,
        call_uuid: callId,
      }),
    ];
  }

  digit(digit: string): Wire {
    return json({ event: "websocket:dtmf", digit, duration: 260 });
  }

  protected played(mark: string): Wire {
    return json({ event: "websocket:notify", payload: { mark } });
  }

  protected takeText(message: string): void {
    const { link } = this;
    const parsed = parseMessage(link, message);
    if (parsed === null) return;
    if (parsed.action === "clear") {
      if (!hasOnly(link, parsed, ["action"])) return;
      this.marks.clear();
      link.send(json({ event: "websocket:cleared" }));
    } else if (parsed.action === "notify") {
      if (hasOnly(link, parsed, ["action", "payload"]) && isJson(parsed.payload)) {
        this.marks.add(parsed.payload.mark);
      }
    } else {
      link.violate("an action that Vonage does not know");
    }
  }

  protected takeAudio(audio: Uint8Array): void {
    const { player, call } = this.link;
    const frameSamples = factsOf(call.format).sampleRate / 50;
    if (audio.length !== frameSamples * 2) {
      this.link.violate(`${audio.length} bytes, expected ${frameSamples * 2}`);
      return;
    }
    if (player.queuedSamples / frameSamples >= VonagePeer.MAX_MESSAGES) {
      this.link.violate("the buffer of 3072 messages is full");
      return;
    }
    player.push(audio);
  }
}
