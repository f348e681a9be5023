/** What one request to a speech service cost: gathered while it runs, noted in the ledger once, when it is over. */
import { bytesPerMs } from "../audio/formats.ts";
import type { CostSource, LedgerSink } from "../ledger/entries.ts";
import type { SynthesisHead, SynthesisRequest } from "./types.ts";

export interface CostPlace {
  readonly upstream: string;
  readonly region: string;
}

/** What a request says of who asks, and for what. */
export function askedBy(request: SynthesisRequest) {
  const { subject, utterance, modelId = "" } = request;
  const isSpeech = request.kind === "speech";
  return {
    tenant: subject?.payer?.tenant ?? "",
    key: subject?.payer?.key ?? "",
    session: utterance?.session ?? "",
    epoch: utterance?.epoch ?? "",
    utterance: utterance?.id ?? "",
    model: modelId,
    voice: isSpeech ? request.voiceId : (request.inputs[0]?.voiceId ?? ""),
    chars_sent: codePoints(isSpeech ? request.text : request.inputs.map(({ text }) => text).join("")),
    try: request.tries ?? 1,
  };
}

export class RequestCost {
  readonly #ledger: LedgerSink;
  readonly #request: SynthesisRequest;
  readonly #place: CostPlace;
  #isSent = false;
  #isOver = false;
  #head: SynthesisHead | null = null;
  /** Characters that the body says are billed; null: it has not said. */
  #billed: number | null = null;
  #audioBytes = 0;

  constructor(ledger: LedgerSink, request: SynthesisRequest, place: CostPlace) {
    this.#ledger = ledger;
    this.#request = request;
    this.#place = place;
  }

  sent(): void {
    this.#isSent = true;
  }

  /** Too many requests: it is not billed, and leaves again. */
  turnedAway(): void {
    this.#isSent = false;
  }

  head(head: SynthesisHead): void {
    this.#isSent = true;
    this.#head = head;
  }

  audio(bytes: number): void {
    this.#audioBytes += bytes;
  }

  billed(characters: number): void {
    this.#billed = characters;
  }

  /** Only the first call counts. One that never left costs nothing, and is not noted. */
  end(outcome: string, isRefused = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (!this.#isSent) return;
    const { billed, source } = this.#bill(isRefused);
    this.#ledger.add({
      type: "request",
      ...askedBy(this.#request),
      ...this.#place,
      chars_billed: billed,
      source,
      audio_ms: Math.round(this.#audioBytes / bytesPerMs(this.#request.outputFormat)),
      cached: false,
      outcome,
      request_id: this.#head?.requestId ?? null,
    });
  }

  #bill(isRefused: boolean): { readonly billed: number | null; readonly source: CostSource } {
    const named = this.#head?.characterCost;
    if (named !== undefined) return { billed: named, source: "header" };
    if (this.#billed !== null) return { billed: this.#billed, source: "body" };
    return isRefused ? { billed: 0, source: "refused" } : { billed: null, source: "counted" };
  }
}

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
