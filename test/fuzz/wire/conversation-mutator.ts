/** Makes a wrong conversation out of a good one: of its order, of each message, and of the frames it goes in. */
import type { Mutator } from "../mutator.ts";
import { frame, OPCODE } from "./web-socket-wire.ts";

/** One message as it is meant: text is UTF-8. */
export interface Message {
  readonly isText: boolean;
  readonly bytes: Buffer;
}

export function textMessage(text: string): Message {
  return { isText: true, bytes: Buffer.from(text) };
}

/** Frames as they go on the wire. */
export interface Frames {
  readonly bytes: Buffer;
  /** The message that they were made of. */
  readonly meant: Buffer;
  /** Whether what is sent behind them is read, or the connection closed: a length that never comes swallows it. */
  readonly isSound: boolean;
}

/** Of these, seven are wrong frames: most end the connection. */
const FRAME_CASES = 300;
/** The first of these behind the wrong ones. */
const FIRST_SOUND = 6;
const NESTED_LEVELS = 20_000;
const LONG_BYTES = 300_000;
/** One message in so many is as long as that: it costs as much as hundreds. */
const LONG_EVERY = 400;
/** UTF-8 of a lone surrogate, of a character that is too large, of one that is cut, and an overlong one. */
const BROKEN_UTF8 = ["eda080", "f4908080", "e282", "c080"];
const JSON_TEXTS = [
  "[".repeat(NESTED_LEVELS),
  `${'{"a":'.repeat(NESTED_LEVELS)}1${"}".repeat(NESTED_LEVELS)}`,
  '{"type":"speak","text":"\\ud800","voice_settings":{"speed":1e400}}',
  `{"type":"ping","id":${"9".repeat(400)}}`,
  '{"type":"speak","text":"a","__proto__":{"type":"interrupt"},"constructor":1}',
  '{"event":"media","media":{"payload":"====","chunk":-1e308,"timestamp":"NaN"}}',
  '{"text":"\\udfff\\ud800","context_id":"\\u0000","voice_settings":{"stability":9e999}}',
];

export class ConversationMutator {
  readonly #mutator: Mutator;

  constructor(mutator: Mutator) {
    this.#mutator = mutator;
  }

  /** `others`: messages that may stand in for one of these. The same length at most, and some more. */
  conversation(good: readonly Message[], others: readonly Message[]): Message[] {
    const messages = [...good];
    const mutator = this.#mutator;
    for (let changes = mutator.next(3); changes > 0; changes -= 1) {
      const at = mutator.next(messages.length + 1);
      const to = mutator.next(messages.length + 1);
      const moved = messages[at];
      switch (mutator.next(4)) {
        case 0:
          messages.splice(at, 1);
          break;
        case 1:
          if (moved !== undefined)
            messages.splice(to, 0, ...Array.from({ length: 1 + mutator.next(8) }, () => moved));
          break;
        case 2:
          messages.splice(at, 1);
          if (moved !== undefined) messages.splice(to, 0, moved);
          break;
        default:
          messages.splice(at, mutator.next(2), mutator.pick(others) ?? textMessage("{}"));
      }
    }
    return messages;
  }

  message(good: Message, other: Message): Message {
    const mutator = this.#mutator;
    switch (mutator.next(16)) {
      case 0:
        return { ...good, isText: !good.isText };
      case 1:
        return textMessage(mutator.pick(JSON_TEXTS) ?? "");
      case 2: {
        if (mutator.next(4) > 0) return good;
        const broken = Buffer.from(mutator.pick(BROKEN_UTF8) ?? "", "hex");
        const at = mutator.next(good.bytes.length + 1);
        return {
          ...good,
          bytes: Buffer.concat([good.bytes.subarray(0, at), broken, good.bytes.subarray(at)]),
        };
      }
      case 3:
        if (mutator.next(LONG_EVERY / 16) === 0)
          return { ...good, bytes: Buffer.alloc(LONG_BYTES, good.bytes.length === 0 ? "a" : good.bytes) };
        return good;
      default: {
        const bytes = mutator.mutate(good.bytes, other.bytes);
        // Text that is no UTF-8 ends its connection: most is to be read.
        const isMended = good.isText && mutator.next(16) > 0;
        return { ...good, bytes: isMended ? Buffer.from(bytes.toString("utf8")) : bytes };
      }
    }
  }

  /** Mostly one sound frame. */
  frames({ isText, bytes }: Message): Frames {
    const opcode = isText ? OPCODE.text : OPCODE.binary;
    const which = this.#mutator.next(FRAME_CASES);
    const isSound = which === 0 || which >= FIRST_SOUND;
    return { bytes: this.#framed(which, opcode, bytes), meant: bytes, isSound };
  }

  #framed(which: number, opcode: number, bytes: Buffer): Buffer {
    const mutator = this.#mutator;
    switch (which) {
      case 0:
        return this.#fragments(opcode, bytes);
      case 1:
        return frame({ opcode, payload: bytes, isMasked: false });
      case 2:
        return frame({ opcode, payload: bytes, reserved: 1 + mutator.next(7) });
      case 3:
        return frame({ opcode: mutator.next(16), payload: bytes, isFinal: mutator.next(2) === 0 });
      case 4: {
        const sound = frame({ opcode, payload: bytes });
        return this.#mutator.mutate(sound, sound);
      }
      case 5:
        // A length that never comes.
        return Buffer.from([
          0x80 | opcode,
          0xff,
          mutator.next(256),
          255,
          255,
          255,
          255,
          255,
          255,
          255,
          1,
          2,
          3,
          4,
        ]);
      case 6:
        return frame({ opcode: OPCODE.ping, payload: Buffer.alloc(mutator.next(200), 7) });
      default:
        return frame({ opcode, payload: bytes });
    }
  }

  #fragments(opcode: number, bytes: Buffer): Buffer {
    const parts: Buffer[] = [];
    const count = 2 + this.#mutator.next(4);
    const step = Math.ceil(bytes.length / count);
    for (let index = 0; index < count; index += 1) {
      const payload = bytes.subarray(index * step, (index + 1) * step);
      parts.push(
        frame({
          opcode: index === 0 ? opcode : OPCODE.continuation,
          payload,
          isFinal: index === count - 1 && this.#mutator.next(4) > 0,
        }),
      );
      if (this.#mutator.next(3) === 0) parts.push(frame({ opcode: OPCODE.ping, payload: Buffer.from("p") }));
    }
    return Buffer.concat(parts);
  }
}
