/** How things stand, in a few words: the connection, the queue, and the figures under the waveform. */
import type { PresenceEvent } from "../../protocol/events.ts";
import type { LinkState } from "../gateway-link.ts";
import type { AudioEngine } from "../sound/audio-engine.ts";
import { byId } from "./dom.ts";
import type { StatusKind } from "./notices.ts";

const AWAITING = "Waiting for a speaker";

export function statusOf(
  state: LinkState,
  speech: {
    readonly isSpeaking: boolean;
    /** Utterances in the queue. */
    readonly waiting: number;
    readonly isListener: boolean;
    /** The session to listen to has not been opened yet. */
    readonly isAwaited: boolean;
  },
): { readonly kind: StatusKind; readonly text: string } {
  switch (state.kind) {
    case "connecting":
      return { kind: "connecting", text: speech.isAwaited ? AWAITING : "Connecting…" };
    case "waiting":
      return speech.isAwaited
        ? { kind: "connecting", text: AWAITING }
        : { kind: "trouble", text: "Connection lost" };
    case "ended":
      return { kind: "trouble", text: "Not connected" };
    case "open":
      break;
  }
  if (!speech.isSpeaking) return { kind: "ready", text: speech.isListener ? "Listening" : "Ready" };
  return { kind: "speaking", text: speech.waiting > 0 ? `Speaking, ${speech.waiting} waiting` : "Speaking" };
}

/** Who is there; unknown until the gateway says. */
export function showPresence({ listeners }: PresenceEvent): void {
  byId("fact-presence", HTMLElement).textContent = `${listeners} listener${listeners === 1 ? "" : "s"}`;
  byId("presence", HTMLElement).hidden = false;
}

export function showFacts(engine: AudioEngine): void {
  byId("fact-played", HTMLElement).textContent = `${(engine.positionMs / 1000).toFixed(1)} s`;
  byId("fact-ahead", HTMLElement).textContent = `${Math.round(engine.aheadMs / 10) * 10} ms`;
  const names = { webcodecs: "WebCodecs", wasm: "WebAssembly" };
  byId("fact-decoder", HTMLElement).textContent =
    engine.decoderKind === null ? "…" : names[engine.decoderKind];
}
