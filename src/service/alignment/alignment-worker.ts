/** The alignment thread: speaks each text with the engine's voices, and finds its words in the audio that comes. */

import { WholeSamples } from "../../audio/analysis/whole-samples.ts";
import { decodeSamples, sampledFormatOf } from "../../audio/codecs/samples.ts";
import { type SendReply, serveJobs } from "../../kit/serve-jobs.ts";
import type { FoundWord } from "../../timing/aligner.ts";
import { Engine } from "../voice/engine/engine.ts";
import type { FromAlignment, ToAlignment } from "./alignment-messages.ts";
import { bandwidthOf } from "./mel-spectrum.ts";
import { OnlineAlignment } from "./online-alignment.ts";
import { modelOf } from "./reference-model.ts";
import { ReferenceSpeaker } from "./reference-speaker.ts";

class Response {
  readonly #samples: WholeSamples;
  /** null: the text has nothing to say. */
  readonly #alignment: OnlineAlignment | null;

  constructor({ text, language, format }: Extract<ToAlignment, { type: "open" }>, speaker: ReferenceSpeaker) {
    const sampled = sampledFormatOf(format);
    if (sampled === null) throw new RangeError(`Cannot look into "${format}"`);
    this.#samples = new WholeSamples(sampled.codec);
    const { sampleRate } = sampled;
    const model = modelOf(text, speaker.speak(text, language), bandwidthOf(sampleRate));
    this.#alignment = model === null ? null : new OnlineAlignment(model, sampleRate);
  }

  push(audio: Uint8Array): readonly FoundWord[] {
    const { codec } = this.#samples;
    const { bytes } = this.#samples.push(audio);
    return this.#alignment?.push(decodeSamples(codec, bytes)) ?? [];
  }

  finish(): readonly FoundWord[] {
    return this.#alignment?.finish() ?? [];
  }

  get isLike(): boolean {
    return this.#alignment?.isLike === true;
  }
}

class Responses {
  readonly #responses = new Map<number, Response>();
  readonly #speaker: ReferenceSpeaker;
  readonly #reply: SendReply<FromAlignment>;

  constructor(engine: Engine, reply: SendReply<FromAlignment>) {
    this.#speaker = new ReferenceSpeaker(engine);
    this.#reply = reply;
  }

  take(job: number, request: ToAlignment): void {
    try {
      this.#take(job, request);
    } catch {
      // A text that the engine can't say concerns this response alone: the gateway guesses its times.
      this.#end(job, false);
    }
  }

  #take(job: number, request: ToAlignment): void {
    if (request.type === "open") {
      this.#responses.set(job, new Response(request, this.#speaker));
      return;
    }
    const response = this.#responses.get(job);
    if (response === undefined) return;
    if (request.type === "audio") {
      this.#reply(job, { type: "found", words: response.push(request.bytes), bytes: request.bytes.length });
      return;
    }
    if (request.isWanted) this.#reply(job, { type: "found", words: response.finish(), bytes: 0 });
    this.#end(job, response.isLike);
  }

  #end(job: number, isLike: boolean): void {
    this.#responses.delete(job);
    this.#reply(job, { type: "ended", isLike });
  }
}

await serveJobs<ToAlignment, FromAlignment>(async (reply) => {
  const responses = new Responses(await Engine.load(), reply);
  return (job, request) => responses.take(job, request);
});
