/**
 * A dialogue as one request for each of its lines, in order: for services that know no dialogues, and for lines of several
 * upstreams. What comes is one response: times, and characters, go on from line to line.
 */
import { OggOpusReader, opusPacketSamples48k } from "../audio/containers/ogg-reader.ts";
import { bytesPerMs, parseUpstreamFormat } from "../audio/formats.ts";
import { type GatewayError, toGatewayError } from "../errors.ts";
import type { Alignment } from "../timing/alignment.ts";
import type {
  DialogueRequest,
  SpeechRequest,
  Synthesis,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisHead,
  Upstream,
} from "./types.ts";

export interface LineDialogueOptions {
  /** Asked for each line. */
  readonly upstream: Upstream;
  readonly request: DialogueRequest;
  readonly handlers: SynthesisHandlers;
  /** Whether the first upstream may speak a line: its times may need repair. */
  readonly mayAskFirst: boolean;
}

export class LineDialogue implements Synthesis {
  readonly #options: LineDialogueOptions;
  /** null between two lines, and when it is over. */
  #line: Synthesis | null = null;
  #index = -1;
  #isPaused = false;
  #isOver = false;
  /** Where the line begins: seconds, and characters of the alignments. */
  #fromSeconds = 0;
  #fromCharacter = 0;
  #characters = 0;
  #length: AudioLength;

  constructor(options: LineDialogueOptions) {
    this.#options = options;
    this.#length = new AudioLength(options.request.outputFormat);
    this.#next();
  }

  pause(): void {
    this.#isPaused = true;
    this.#line?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#line?.resume();
  }

  abort(): void {
    this.#isOver = true;
    this.#line?.abort();
    this.#line = null;
  }

  #next(): void {
    const { upstream, request, handlers } = this.#options;
    this.#index += 1;
    const input = request.inputs[this.#index];
    if (input === undefined) {
      this.#isOver = true;
      this.#line = null;
      handlers.end();
      return;
    }
    this.#line = upstream.open(lineRequest(request, input), {
      requestSent: (firstAudioMs) => {
        if (this.#index === 0) handlers.requestSent?.(firstAudioMs);
      },
      requestTurnedAway: () => {
        if (this.#index === 0) handlers.requestTurnedAway?.();
      },
      head: (head) => this.#head(head),
      chunk: (chunk) => this.#chunk(chunk),
      billed: (characters) => handlers.billed?.(characters),
      end: () => this.#end(),
      error: (error) => this.#fail(error),
    });
    if (this.#isPaused) this.#line.pause();
  }

  /** That of the first line stands for all; each is billed by itself. */
  #head(head: SynthesisHead): void {
    if (this.#index > 0) return;
    const { ignored, timesFrom, hasEstimatedTimes } = head;
    const { handlers, mayAskFirst } = this.#options;
    handlers.head({
      ...(ignored === undefined ? {} : { ignored }),
      ...(timesFrom === "response" && !mayAskFirst ? { timesFrom } : {}),
      ...(hasEstimatedTimes === undefined ? {} : { hasEstimatedTimes }),
    });
  }

  #chunk({ audio, alignment, normalizedAlignment }: SynthesisChunk): void {
    this.#length.push(audio);
    this.#characters += alignment?.characters.length ?? 0;
    this.#options.handlers.chunk({
      audio,
      alignment: later(alignment, this.#fromSeconds),
      normalizedAlignment: later(normalizedAlignment, this.#fromSeconds),
      voiceSegments: [],
    });
  }

  /** Its voice is told when its length is known, to the sample. */
  #end(): void {
    const { request, handlers } = this.#options;
    const endSeconds = this.#length.seconds;
    const [start, startSeconds] = [this.#fromCharacter, this.#fromSeconds];
    this.#fromCharacter = this.#characters;
    this.#fromSeconds = endSeconds;
    this.#line = null;
    handlers.chunk({
      audio: new Uint8Array(0),
      alignment: null,
      normalizedAlignment: null,
      voiceSegments: [
        {
          voice_id: request.inputs[this.#index]?.voiceId ?? "",
          start_time_seconds: startSeconds,
          end_time_seconds: endSeconds,
          character_start_index: start,
          character_end_index: this.#characters,
          dialogue_input_index: this.#index,
        },
      ],
    });
    if (this.#isOver) return;
    this.#length.endLine();
    try {
      this.#next();
    } catch (thrown) {
      this.#fail(toGatewayError(thrown));
    }
  }

  #fail(error: GatewayError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#line = null;
    this.#options.handlers.error(error);
  }
}

function lineRequest(request: DialogueRequest, input: DialogueRequest["inputs"][number]): SpeechRequest {
  const { inputs: _inputs, settings, kind: _kind, ...shared } = request;
  return {
    ...shared,
    kind: "speech",
    voiceId: input.voiceId,
    text: input.text,
    ...(settings?.stability === undefined ? {} : { voiceSettings: { stability: settings.stability } }),
  };
}

function later(alignment: Alignment | null, seconds: number): Alignment | null {
  if (alignment === null || seconds === 0) return alignment;
  const moved = (times: readonly number[]): number[] => times.map((time) => time + seconds);
  return {
    characters: alignment.characters,
    character_start_times_seconds: moved(alignment.character_start_times_seconds),
    character_end_times_seconds: moved(alignment.character_end_times_seconds),
  };
}

/** How long audio of a format is that came so far. */
class AudioLength {
  readonly #bytesPerSecond: number | null;
  #bytes = 0;
  #ogg: OggOpusReader | null = null;
  #samples48k = 0;
  /** Seconds of the lines before. */
  #before = 0;

  constructor(format: string) {
    const isOpus = parseUpstreamFormat(format)?.codec === "opus";
    this.#bytesPerSecond = isOpus ? null : bytesPerMs(format) * 1000;
  }

  get seconds(): number {
    if (this.#bytesPerSecond !== null) return this.#bytes / this.#bytesPerSecond;
    const preSkip = this.#ogg?.preSkip ?? 0;
    const said = Math.min(this.#samples48k - preSkip, this.#ogg?.endSamples48k ?? Number.POSITIVE_INFINITY);
    return this.#before + Math.max(0, said) / 48_000;
  }

  push(audio: Uint8Array): void {
    this.#bytes += audio.length;
    if (this.#bytesPerSecond !== null || audio.length === 0) return;
    this.#ogg ??= new OggOpusReader();
    this.#ogg.push(audio, (packet) => {
      this.#samples48k += opusPacketSamples48k(packet);
    });
  }

  endLine(): void {
    this.#before = this.seconds;
    this.#ogg = null;
    this.#samples48k = 0;
  }
}
