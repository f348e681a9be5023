/** Asterisk's end of a call (chan_websocket). */
import type { Wire } from "../../../src/protocol/carrier/carrier.ts";
import { BinaryPeer } from "./base-peer.ts";
import { json } from "./json-peer.ts";
import { factsOf, type Json, type PeerLink, parseMessage } from "./peer.ts";

/** Asterisk's names of formats. */
const ASTERISK_FORMATS: Readonly<Record<string, string>> = {
  ulaw_8000: "ulaw",
  alaw_8000: "alaw",
  pcm_8000: "slin",
  pcm_16000: "slin16",
  pcm_24000: "slin24",
  pcm_48000: "slin48",
};

/**
 * Asterisk chan_websocket: a queue of at most 1000 frames, XOFF from 900, XON below 800; what is no whole frame is lost;
 * commands of more than 128 bytes are ignored; FLUSH_MEDIA drops marks without a word.
 */
export class AsteriskPeer extends BinaryPeer {
  static readonly MAX_FRAMES = 1000;
  static readonly XOFF_FRAMES = 900;
  static readonly XON_FRAMES = 800;
  static readonly MAX_COMMAND_BYTES = 128;
  static readonly MAX_MEDIA_BYTES = 65_500;
  readonly #isJson: boolean;
  #isFull = false;
  /** True after HANGUP. */
  isHungUp = false;

  constructor(link: PeerLink, control: "plain" | "json" = "plain") {
    super(link);
    this.#isJson = control === "json";
  }

  opening(): readonly Wire[] {
    const { call } = this.link;
    const facts = {
      connection_id: "gw",
      channel: "WebSocket/gw-0x7f0a",
      channel_id: call.callId,
      format: ASTERISK_FORMATS[call.format] ?? "ulaw",
      optimal_frame_size: this.#frameBytes,
      ptime: 20,
    };
    if (this.#isJson) return [json({ event: "MEDIA_START", ...facts, channel_variables: call.parameters })];
    return [
      `MEDIA_START ${Object.entries(facts)
        .map(([name, value]) => `${name}:${value}`)
        .join(" ")}`,
    ];
  }

  digit(digit: string): Wire {
    const channel_id = this.link.call.callId;
    return this.#isJson
      ? json({ event: "DTMF_END", channel_id, digit })
      : `DTMF_END digit:${digit} channel_id:${channel_id}`;
  }

  protected played(name: string): Wire {
    return this.#words("MEDIA_MARK_PROCESSED", { correlation_id: name }, name);
  }

  protected takeText(message: string): void {
    if (Buffer.byteLength(message) > AsteriskPeer.MAX_COMMAND_BYTES) {
      this.link.violate(`a command of ${Buffer.byteLength(message)} bytes`);
      return;
    }
    const [command, id] = this.#readCommand(message);
    switch (command) {
      case "MARK_MEDIA":
        this.marks.add(id);
        return;
      case "FLUSH_MEDIA":
        this.marks.clear();
        this.#sendRoom();
        return;
      case "HANGUP":
        this.isHungUp = true;
        return;
      default:
        this.link.violate("a command that is not known here");
    }
  }

  get #frameBytes(): number {
    const { sampleRate, bytesPerSample } = factsOf(this.link.call.format);
    return (sampleRate / 50) * bytesPerSample;
  }

  get #frameSamples(): number {
    return factsOf(this.link.call.format).sampleRate / 50;
  }

  #readCommand(message: string): readonly [string, string | undefined] {
    if (!this.#isJson) {
      const [command = "", id] = message.split(" ");
      return [command, id];
    }
    const parsed = parseMessage(this.link, message);
    const { command, correlation_id: id } = parsed ?? {};
    return [typeof command === "string" ? command : "", typeof id === "string" ? id : undefined];
  }

  protected takeAudio(media: Uint8Array): void {
    const link = this.link;
    if (media.length > AsteriskPeer.MAX_MEDIA_BYTES) {
      link.violate(`${media.length} bytes close the call`);
      return;
    }
    const rest = media.length % this.#frameBytes;
    if (rest !== 0) link.violate(`${rest} bytes are no whole frame and are lost`);
    for (let at = 0; at + this.#frameBytes <= media.length; at += this.#frameBytes) {
      if (this.#queuedFrames >= AsteriskPeer.MAX_FRAMES) {
        link.violate("the queue of 1000 frames is full");
        return;
      }
      link.player.push(media.subarray(at, at + this.#frameBytes));
    }
    if (this.#isFull || this.#queuedFrames < AsteriskPeer.XOFF_FRAMES) return;
    this.#isFull = true;
    this.#event("MEDIA_XOFF");
    const room = link.player.endSamples - (AsteriskPeer.XON_FRAMES - 1) * this.#frameSamples;
    link.player.notify(room, () => this.#sendRoom());
  }

  get #queuedFrames(): number {
    return Math.ceil(this.link.player.queuedSamples / this.#frameSamples);
  }

  /** What came while it was full moves the place where there is room again. */
  #sendRoom(): void {
    if (!this.#isFull) return;
    const { player } = this.link;
    const room = player.endSamples - (AsteriskPeer.XON_FRAMES - 1) * this.#frameSamples;
    if (player.playedSamples < room) {
      player.notify(room, () => this.#sendRoom());
      return;
    }
    this.#isFull = false;
    this.#event("MEDIA_XON");
  }

  #event(name: string): void {
    this.link.send(this.#words(name));
  }

  #words(name: string, fields: Json = {}, argument?: string): string {
    const channel_id = this.link.call.callId;
    const plain = argument === undefined ? name : `${name} ${argument}`;
    return this.#isJson ? json({ event: name, channel_id, ...fields }) : plain;
  }
}
