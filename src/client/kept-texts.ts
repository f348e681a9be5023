/**
 * Texts in tokens, kept until they are over: a line may be dead for long before it breaks, and nobody knows which tokens came.
 * On a new socket the gateway says how much it has of each, and the rest is sent.
 */
import type { Command, TextCommand } from "../protocol/commands.ts";
import type { Event, HelloEvent } from "../protocol/events.ts";
import type { OffsetUnit } from "../protocol/vocabulary.ts";
import { clientError } from "./client-error.ts";

/** As many as a gateway takes by default; the oldest one is given up for one more. */
const MAX_TEXTS = 64;
const MAX_CHARS = 1_000_000;
/** Longest token that is sent again; its message has room for it. */
const PIECE_CHARS = 4096;
/** Errors that name an utterance and refuse no token of it. */
const OF_OTHER_COMMANDS: ReadonlySet<string> = new Set([
  "nothing_to_interrupt",
  "nothing_to_cancel",
  "nothing_to_resume",
  "resume_expired",
  "unknown_utterance",
]);

export type TextFields = Omit<TextCommand, "type" | "text">;

interface KeptText {
  readonly id: string;
  readonly options: TextFields;
  text: string;
  /** Where it was flushed last. */
  flushedAt: number | null;
  isEnded: boolean;
  /** The gateway has it from its beginning: tokens say where they stand. */
  isPlaced: boolean;
  /** The gateway has said that it began. */
  isAccepted: boolean;
  /** The session that had it is gone. */
  isLost: boolean;
}

export interface KeptTextsOptions {
  /** Throws not_connected where nothing can be sent, and no new socket is to come. */
  readonly send: (command: Command) => void;
  /** Between two sockets: what is said is sent on the next one. */
  readonly isAway: () => boolean;
  readonly newId: () => string;
}

export class KeptTexts {
  readonly #options: KeptTextsOptions;
  readonly #texts = new Map<string, KeptText>();
  /** What text without an id goes on with. */
  #currentId: string | null = null;
  #chars = 0;
  /** What offsets count. */
  unit: OffsetUnit = "utf16";

  constructor(options: KeptTextsOptions) {
    this.#options = options;
  }

  /** Sends a token, now or on the next socket. Throws not_connected, connection_lost. */
  text(text: string, fields: TextFields): void {
    const id = fields.utterance_id ?? this.#currentId ?? this.#options.newId();
    const known = this.#texts.get(id);
    const isBegun = known !== undefined || id === this.#currentId;
    const kept = isBegun ? known : this.#begin(id, fields);
    if (kept === undefined || kept.isEnded || fields.offset !== undefined) {
      if (kept !== undefined && fields.offset !== undefined) this.#forget(id);
      this.#options.send({ type: "text", text, ...fields, utterance_id: id });
      return;
    }
    mustStand(kept);
    const { isAway, send } = this.#options;
    if (isAway() && this.#chars + text.length > MAX_CHARS)
      throw clientError("not_connected", "Command text: the connection is closed, and no more text is kept");
    const offset = this.#offsetOf(kept, kept.text.length);
    kept.text += text;
    this.#chars += text.length;
    this.#keepBounds(kept);
    if (!isAway())
      send({ type: "text", text, ...fields, utterance_id: id, ...(kept.isPlaced ? { offset } : {}) });
  }

  /** Throws not_connected, connection_lost. */
  close(type: "flush" | "end", utteranceId: string | undefined): void {
    const id = utteranceId ?? this.#currentId ?? undefined;
    const kept = id === undefined ? undefined : this.#texts.get(id);
    if (kept !== undefined) {
      mustStand(kept);
      if (type === "end") kept.isEnded = true;
      else kept.flushedAt = kept.text.length;
    }
    if (type === "end" && id === this.#currentId) this.#currentId = null;
    if (kept === undefined || !this.#options.isAway())
      this.#options.send({ type, ...(id === undefined ? {} : { utterance_id: id }) });
  }

  take(event: Event): void {
    if (event.type === "utterance.queued") this.#accepted(event.utterance_id);
    if (event.type === "error" && event.utterance_id !== undefined) {
      // What stands behind a hole in it is no copy of what the gateway has.
      if (!OF_OTHER_COMMANDS.has(event.code)) this.#forget(event.utterance_id);
    }
    if (event.type !== "utterance.done") return;
    if (event.utterance_id === this.#currentId) this.#currentId = null;
    // Text of one that was interrupted may go on.
    if (event.outcome !== "interrupted") this.#forget(event.utterance_id);
  }

  /** Another socket has joined; `isSameSession`: what was said before is not lost. */
  rejoined({ texts = [], settings }: HelloEvent, isSameSession: boolean): void {
    this.unit = settings.offsets ?? "utf16";
    for (const kept of [...this.#texts.values()]) {
      const known = texts.find(({ utterance_id }) => utterance_id === kept.id);
      if (!isSameSession) kept.isLost = true;
      else if (known !== undefined) this.#goOn(kept, this.#indexOf(kept, known.text_received), known.ended);
      else if (!kept.isAccepted) this.#goOn(kept, 0, false);
    }
  }

  #begin(id: string, options: TextFields): KeptText | undefined {
    this.#currentId = id;
    if (options.offset !== undefined) return undefined;
    // An id of our own is nobody else's; under another one somebody may have begun already.
    const isPlaced = options.utterance_id === undefined;
    const kept: KeptText = {
      id,
      options,
      text: "",
      flushedAt: null,
      isEnded: false,
      isPlaced,
      isAccepted: false,
      isLost: false,
    };
    this.#texts.set(id, kept);
    return kept;
  }

  #accepted(id: string): void {
    const kept = this.#texts.get(id);
    if (kept === undefined) return;
    kept.isPlaced = true;
    kept.isAccepted = true;
  }

  #forget(id: string): void {
    const kept = this.#texts.get(id);
    if (kept === undefined) return;
    this.#texts.delete(id);
    this.#chars -= kept.text.length;
  }

  #keepBounds(latest: KeptText): void {
    for (const { id } of this.#texts.values()) {
      if (this.#texts.size <= MAX_TEXTS && this.#chars <= MAX_CHARS) return;
      if (id !== latest.id) this.#forget(id);
    }
  }

  /** The gateway has the text up to `received`. */
  #goOn(kept: KeptText, received: number, hasEnd: boolean): void {
    const { id, text, flushedAt, isEnded } = kept;
    if (received > text.length) {
      // Somebody else has said some of it.
      this.#forget(id);
      return;
    }
    this.#accepted(id);
    const { send } = this.#options;
    let at = received;
    if (flushedAt !== null && flushedAt >= received && !hasEnd) {
      this.#send(kept, at, flushedAt);
      if (flushedAt > 0) send({ type: "flush", utterance_id: id });
      at = flushedAt;
    }
    this.#send(kept, at, text.length);
    if (isEnded && !hasEnd) send({ type: "end", utterance_id: id });
  }

  #send(kept: KeptText, from: number, end: number): void {
    for (let at = from; at < end; at += PIECE_CHARS) {
      const text = kept.text.slice(at, Math.min(end, at + PIECE_CHARS));
      const options = at === 0 ? kept.options : {};
      const offset = this.#offsetOf(kept, at);
      this.#options.send({ type: "text", text, ...options, utterance_id: kept.id, offset });
    }
  }

  #offsetOf({ text }: KeptText, index: number): number {
    if (this.unit === "utf16") return index;
    let count = 0;
    for (let at = 0; at < index; count += 1) {
      const end = nextPoint(text, at);
      // The first half of a pair: its other half comes with what follows.
      if (end > index || (end === text.length && isFirstHalf(text, at))) break;
      at = end;
    }
    return count;
  }

  #indexOf({ text }: KeptText, offset: number): number {
    if (this.unit === "utf16") return offset;
    let at = 0;
    for (let left = offset; left > 0; left -= 1) {
      // The gateway has more than is kept.
      if (at >= text.length) return text.length + 1;
      at = nextPoint(text, at);
    }
    return at;
  }
}

function nextPoint(text: string, at: number): number {
  return at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);
}

function isFirstHalf(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xd800 && unit <= 0xdbff && nextPoint(text, at) === at + 1;
}

/** Throws connection_lost. */
function mustStand({ id, isLost }: KeptText): void {
  if (isLost)
    throw clientError("connection_lost", `Text ${id}: its session is gone, expected a new utterance_id`);
}
