/**
 * What one context has to say, in order: generations, and marks of what a flush asked for. Two of its requests are open
 * at most; the second leaves when the first has begun to sound, so that it takes nothing from its first audio.
 */
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Semaphore } from "../kit/semaphore.ts";
import type { AudioMessage } from "../protocol/elevenlabs/server-messages.ts";
import type { UpstreamAttempt } from "../session/synthesis/upstream-attempt.ts";
import type { SynthesisRequest } from "../upstream/types.ts";
import { Generation } from "./generation.ts";
import { createJoinedAudio } from "./joined-audio.ts";
import type { SocketDeps, WaitingText } from "./ports.ts";
import { boundWaiting, startAttempt } from "./requests.ts";

interface ContextOutput {
  /** Whether more audio may be sent now. */
  hasRoom(): boolean;
  audio(message: AudioMessage): void;
  /** All that was said before this flush has been sent. */
  flushed(): void;
  /** All has been sent, and nothing more will come. Called once. */
  over(): void;
  /** Nothing is called after it. */
  failed(error: GatewayError): void;
}

export interface ContextSpeechOptions {
  readonly deps: SocketDeps;
  /** Upstream requests of the socket, which its contexts share. */
  readonly slots: Semaphore;
  readonly format: string;
  readonly isSynced: boolean;
  readonly isAbsolute: boolean;
  readonly output: ContextOutput;
}

const MAX_OPEN = 2;
/** Generations and flushes that wait, whatever their text: a client may flush without saying anything. */
const MAX_STEPS = 4096;

interface Started {
  readonly run: UpstreamAttempt;
  /** Gives its place back. */
  readonly release: () => void;
}
interface Said {
  readonly kind: "said";
  readonly request: SynthesisRequest;
  readonly text: string;
  started: Started | null;
  generation: Generation | null;
}
type Step = Said | { readonly kind: "flushed" };

export class ContextSpeech {
  readonly #options: ContextSpeechOptions;
  readonly #join;
  #steps: Step[] = [];
  #waitingChars = 0;
  /** Characters in requests that are open. */
  #askedChars = 0;
  readonly #text: WaitingText | null;
  /** Characters of its text that have not been spoken. */
  #countedChars = 0;
  #isEnded = false;
  #isOver = false;
  #isPumping = false;

  constructor(options: ContextSpeechOptions) {
    this.#options = options;
    this.#join = createJoinedAudio(options.format);
    this.#text = options.deps.waitingText?.() ?? null;
  }

  /**
   * What a context may not go over, with text that was not said yet (UTF-16 code units); null: it is within its bounds, and so are all
   * texts that wait together.
   */
  findOverflow(unsaidChars: number): GatewayError | null {
    const { maxTextChars } = this.#options.deps.limits;
    if (unsaidChars + this.#waitingChars > maxTextChars) {
      const message = `More than ${maxTextChars} characters of a context wait to be spoken`;
      return new GatewayError("text_too_long", message);
    }
    if (this.#steps.length >= MAX_STEPS) {
      return new GatewayError(
        "queue_full",
        `More than ${MAX_STEPS} generations and flushes of a context wait`,
      );
    }
    try {
      this.#count(unsaidChars + this.#waitingChars + this.#askedChars);
    } catch (thrown) {
      return toGatewayError(thrown);
    }
    return null;
  }

  /** So much text of the context has not been spoken. Throws queue_full. */
  #count(chars: number): void {
    const more = chars - this.#countedChars;
    if (more > 0) this.#text?.add(more);
    else this.#text?.takeBack(-more);
    this.#countedChars = chars;
  }

  /** Whether anything is being said or waits. */
  get isBusy(): boolean {
    return this.#steps.length > 0;
  }

  /** Call `pump` after it. */
  say(request: SynthesisRequest, text: string): void {
    this.#waitingChars += text.length;
    this.#steps.push({ kind: "said", request, text, started: null, generation: null });
  }

  noteFlush(): void {
    this.#steps.push({ kind: "flushed" });
  }

  /** Forgets what was not asked of the upstream yet, flushes too; what was not said yet, its owner has forgotten. */
  dropWaiting(): void {
    const first = this.#steps.findIndex((step) => step.kind === "said" && step.started === null);
    if (first >= 0) this.#steps.length = first;
    this.#waitingChars = 0;
    this.#count(this.#askedChars);
  }

  /** Nothing more comes: `over` once all has been sent. */
  end(): void {
    this.#isEnded = true;
    this.pump();
  }

  /** Asks for what may be asked for and sends what can be sent. */
  pump(): void {
    if (this.#isPumping || this.#isOver) return;
    this.#isPumping = true;
    try {
      do this.#ask();
      while (!this.#isOver && this.#advance());
    } catch (thrown) {
      this.#fail(toGatewayError(thrown));
    } finally {
      this.#isPumping = false;
    }
    this.#holdReading();
  }

  /** Ends every request; nothing is called any more. Idempotent. */
  abort(): void {
    this.#isOver = true;
    this.#text?.end();
    const steps = this.#steps;
    this.#steps = [];
    for (const step of steps) {
      if (step.kind !== "said") continue;
      step.generation?.abort();
      step.started?.run.abort();
      step.started?.release();
    }
  }

  #ask(): void {
    const said = this.#said().slice(0, MAX_OPEN);
    for (const [index, step] of said.entries()) {
      if (step.started !== null) continue;
      const before = said[index - 1]?.started?.run;
      if (index > 0 && (before === undefined || !maySpeakBehind(before))) return;
      const release = this.#options.slots.tryAcquire();
      if (release === null) return;
      this.#waitingChars -= step.text.length;
      this.#askedChars += step.text.length;
      step.started = this.#paid(step, release);
    }
  }

  /** Throws where the client may have no more spoken. */
  #paid(step: Said, release: () => void): Started {
    try {
      this.#options.deps.spend?.(step.text.length);
    } catch (thrown) {
      release();
      throw thrown;
    }
    return this.#start(step, release);
  }

  #start({ request, text }: Said, release: () => void): Started {
    const { limits, subject, ...deps } = this.#options.deps;
    const { firstAudioMs } = limits;
    const asked = { request: { ...request, subject }, text };
    const onNews = (): void => this.pump();
    return { run: startAttempt({ ...deps, firstAudioMs }, { ...asked, onNews }), release };
  }

  /** Does the next thing in order; false: something has to come first. */
  #advance(): boolean {
    const { output } = this.#options;
    const [step] = this.#steps;
    if (step === undefined) {
      if (this.#isEnded) this.#finish();
      return false;
    }
    if (step.kind === "flushed") {
      this.#steps.shift();
      output.flushed();
      return true;
    }
    if (step.started === null) return false;
    step.generation ??= this.#generationOf(step, step.started.run);
    while (!this.#isOver && output.hasRoom()) {
      const message = step.generation.next();
      if (message === null) break;
      output.audio(message);
    }
    if (this.#isOver || !step.generation.isOver) return false;
    const { run, release } = step.started;
    if (run.error !== null) throw run.error;
    this.#steps.shift();
    release();
    this.#askedChars -= step.text.length;
    this.#count(Math.max(0, this.#countedChars - step.text.length));
    return true;
  }

  #generationOf(step: Said, run: UpstreamAttempt): Generation {
    const { deps, isSynced, isAbsolute } = this.#options;
    return new Generation({
      run,
      join: this.#join,
      clock: deps.clock,
      isSynced,
      isAbsolute,
      holdMs: deps.limits.timingHoldMs,
      textChars: step.text.trimEnd().length,
      onDue: () => this.pump(),
    });
  }

  #finish(): void {
    const { output } = this.#options;
    this.#isOver = true;
    this.#text?.end();
    const audio = this.#join.finish();
    if (audio.length > 0) output.audio({ audio, timing: null, normalizedTiming: null });
    output.over();
  }

  #fail(error: GatewayError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // First: its owner may want nobody to take the places that come free.
    this.#options.output.failed(error);
    this.abort();
  }

  #holdReading(): void {
    for (const { started } of this.#said().slice(0, MAX_OPEN))
      if (started !== null) boundWaiting(started.run);
  }

  #said(): Said[] {
    return this.#steps.filter((step) => step.kind === "said");
  }
}

/** Whether the next request may be open beside it. Behind one that has failed nothing is said. */
function maySpeakBehind(run: UpstreamAttempt): boolean {
  return run.error === null && (run.segment.stages.firstByteMs > 0 || run.isComplete);
}
