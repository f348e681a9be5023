/** One session of the soak: a speaker that says things in every way and interrupts, and listeners that come and go. */
import type { Event } from "../../src/protocol/events.ts";
import type { Participant } from "../../src/session/connections/participant.ts";
import type { Session } from "../../src/session/session.ts";
import type { Random } from "./random.ts";
import { type Engine, SOAK_DEFAULTS } from "./soak-engine.ts";
import { SoakListener } from "./soak-listener.ts";
import { type SoakTally, UtteranceBook } from "./soak-tally.ts";

const WORDS =
  "the ship left harbour early while town was still asleep nobody saw it go but a keeper wrote hours".split(
    " ",
  );
const MAX_LISTENERS = 3;
/** Utterances that wait or speak at once. */
const MAX_WAITING = 3;

/** Chances a step (of some 100 ms) or an utterance. */
const CHANCE = {
  speak: 0.25,
  interrupt: 0.42,
  interruptAll: 0.15,
  resume: 0.1,
  cancel: 0.03,
  join: 0.05,
  leave: 0.05,
  stall: 0.03,
  readOn: 0.2,
  reconfigure: 0.01,
  played: 0.05,
};

/** Opus in frames that no upstream packet has, so that it is encoded here. */
const LISTENING = [
  "format=ulaw_8000",
  "format=ulaw_8000&events=none&lead_ms=100",
  "format=ulaw_8000&pace=burst",
  "format=alaw_8000&events=none",
  "format=pcm_16000&policy=lossless",
  "format=opus_48000&frame_ms=40",
  "format=none",
];

interface Listener {
  readonly session: Session;
  readonly participant: Participant;
  readonly socket: SoakListener;
}

interface Plan {
  readonly id: string;
  /** Steps from now. */
  steps: number;
}

interface OpenText {
  readonly id: string;
  readonly tokens: string[];
}

export interface CallOptions {
  readonly engine: Engine;
  readonly id: string;
  readonly random: Random;
  readonly tally: SoakTally;
  /** What it says before it hangs up. */
  readonly utterances: number;
}

export class SoakCall {
  readonly #options: CallOptions;
  readonly #book: UtteranceBook;
  readonly #speaker: Listener;
  readonly #listeners = new Set<Listener>();
  #left: number;
  #nextId = 1;
  #text: OpenText | null = null;
  #interrupts: Plan[] = [];
  #lastInterrupted: string | null = null;
  #resumes: Plan[] = [];

  constructor(options: CallOptions) {
    this.#options = options;
    this.#left = options.utterances;
    this.#book = new UtteranceBook(options.tally);
    this.#speaker = this.#join("role=both&format=ulaw_8000", (event) => this.#onEvent(event));
  }

  /** Everything it had to say has been said and has ended. */
  get isOver(): boolean {
    return (
      this.#left === 0 && this.#text === null && this.#book.live.size === 0 && this.#resumes.length === 0
    );
  }

  get liveCount(): number {
    return this.#book.live.size;
  }

  step(): void {
    const { random } = this.#options;
    if (this.#text !== null) this.#sendTokens(this.#text);
    else if (this.#left > 0 && this.#book.live.size < MAX_WAITING && random.chance(CHANCE.speak))
      this.#speak();
    this.#stepPlans();
    this.#stepListeners();
    if (random.chance(CHANCE.played)) this.#send({ type: "mark", name: "m" });
  }

  hangUp(): void {
    for (const listener of [...this.#listeners]) this.#leave(listener);
    this.#leave(this.#speaker);
  }

  #onEvent(event: Event): void {
    const outcome = this.#book.take(event);
    if (event.type !== "utterance.done") return;
    this.#interrupts = this.#interrupts.filter(({ id }) => id !== event.utterance_id);
    if (this.#text?.id === event.utterance_id) this.#text = null;
    if (outcome !== "interrupted") return;
    this.#lastInterrupted = event.utterance_id;
    const { random } = this.#options;
    if (random.chance(CHANCE.resume))
      this.#resumes.push({ id: event.utterance_id, steps: 1 + random.below(10) });
  }

  #speak(): void {
    const { random } = this.#options;
    this.#left -= 1;
    const id = `u${this.#nextId++}`;
    const voice = random.chance(0.5) ? { voice_id: "voice" } : {};
    const kind = random.next();
    const before = this.#book.live.size;
    if (kind < 0.55) this.#send({ type: "speak", text: this.#sentences(), utterance_id: id, ...voice });
    else if (kind < 0.85) {
      this.#text = { id, tokens: tokensOf(this.#sentences()) };
      this.#sendTokens(this.#text);
    } else {
      const inputs = Array.from({ length: 2 + random.below(3) }, (_, index) => ({
        text: `${this.#sentence()} `,
        voice_id: index % 2 === 0 ? "voice" : "other",
      }));
      this.#send({ type: "dialogue", inputs, utterance_id: id });
    }
    if (this.#book.live.size === before && kind < 0.55) this.#options.tally.noteError("(text not accepted)");
    if (random.chance(CHANCE.interrupt)) this.#interrupts.push({ id, steps: 1 + random.below(12) });
    else if (random.chance(CHANCE.cancel)) this.#send({ type: "cancel", utterance_id: id });
  }

  #sendTokens(text: OpenText): void {
    const { random } = this.#options;
    for (let count = 1 + random.below(12); count > 0; count -= 1) {
      const token = text.tokens.shift();
      // The utterance may have been interrupted by the token before.
      if (token === undefined || this.#text !== text) break;
      this.#send({ type: "text", text: token, utterance_id: text.id });
    }
    if (text.tokens.length > 0 || this.#text !== text) return;
    this.#text = null;
    this.#send({ type: "end", utterance_id: text.id });
  }

  #stepPlans(): void {
    const { random } = this.#options;
    for (const plan of this.#interrupts) plan.steps -= 1;
    const [due] = this.#interrupts.filter(({ steps }) => steps <= 0);
    if (due !== undefined) {
      this.#interrupts = this.#interrupts.filter((plan) => plan !== due);
      const isOpen = this.#text?.id === due.id;
      const isAll = random.chance(CHANCE.interruptAll);
      if (isOpen || isAll) this.#text = null;
      const keep = random.chance(0.1) ? { keep_ms: random.below(500) } : {};
      this.#send({ type: "interrupt", ...(isAll ? {} : { utterance_id: due.id }), ...keep });
    }
    for (const plan of this.#resumes) plan.steps -= 1;
    const [resume] = this.#resumes.filter(({ steps }) => steps <= 0);
    if (resume === undefined) return;
    this.#resumes = this.#resumes.filter((plan) => plan !== resume);
    const isLatest = resume.id === this.#lastInterrupted && random.chance(0.5);
    const isAccepted = this.#send({ type: "resume", ...(isLatest ? {} : { utterance_id: resume.id }) });
    if (isAccepted) this.#book.resumeAccepted();
  }

  #stepListeners(): void {
    const { random, tally } = this.#options;
    if (this.#listeners.size < MAX_LISTENERS && random.chance(CHANCE.join))
      this.#listeners.add(this.#join(random.pick(LISTENING), null));
    for (const listener of [...this.#listeners]) {
      const { session, socket, participant } = listener;
      if (socket.isStalled && random.chance(CHANCE.readOn)) {
        socket.readOn();
        session.drained(participant);
      } else if (random.chance(CHANCE.leave)) this.#leave(listener);
      else if (!socket.isStalled && random.chance(CHANCE.stall)) {
        tally.stalls += 1;
        socket.stall();
      } else if (random.chance(CHANCE.reconfigure)) {
        const format = random.pick(["ulaw_8000", "ulaw_8000", "pcm_24000"]);
        this.#sendAs(listener, { type: "configure", format, frame_ms: 20 });
      }
    }
  }

  #sentences(): string {
    const { random } = this.#options;
    return Array.from({ length: 1 + random.below(3) }, () => this.#sentence()).join(" ");
  }

  #sentence(): string {
    const { random } = this.#options;
    const words = Array.from({ length: 3 + random.below(10) }, () => random.pick(WORDS)).join(" ");
    return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
  }

  #join(query: string, onEvent: ((event: Event) => void) | null): Listener {
    const { engine, id, tally } = this.#options;
    const socket = new SoakListener(onEvent);
    const joining = engine.modules.parseSettings(new URLSearchParams(query), SOAK_DEFAULTS);
    tally.joins += 1;
    const session = engine.sessions.open(id);
    const participant = session.join(socket, joining);
    const listener: Listener = { session, participant, socket };
    socket.onEnd = () => this.#leave(listener);
    return listener;
  }

  #leave(listener: Listener): void {
    const { tally } = this.#options;
    const { session, participant, socket } = listener;
    this.#listeners.delete(listener);
    if (socket.onEnd === null) return;
    socket.onEnd = null;
    tally.frames += socket.frames;
    tally.events += socket.events;
    session.leave(participant);
  }

  #send(message: object): boolean {
    return this.#sendAs(this.#speaker, message);
  }

  /** As the edge does it; false where the command was refused. */
  #sendAs(from: Listener, message: object): boolean {
    const { engine, tally } = this.#options;
    const { parseCommand, handleCommand, toGatewayError } = engine.modules;
    try {
      const { command } = parseCommand(JSON.stringify(message));
      if (command.type === "refresh") return false;
      handleCommand(from, command);
      return true;
    } catch (thrown) {
      const error = toGatewayError(thrown);
      tally.noteError(error.code);
      if (error.code === "internal") tally.violate("fault", String(error.cause ?? error));
      return false;
    }
  }
}

/** Four characters a token. */
function tokensOf(text: string): string[] {
  return text.match(/.{1,4}/gsu) ?? [];
}
