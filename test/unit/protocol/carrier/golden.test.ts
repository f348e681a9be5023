/**
 * Whole calls in the shapes that the vendors document, replayed byte for byte. A transcript's lines: `<` and `<b` come
 * from the carrier (text, bytes in hexadecimal), `!` is what we do, and what follows is all that comes of it: `=` an
 * event, `>` and `>b` messages to the carrier. Byte i of frame n is (31 n + i) mod 251.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  CARRIERS,
  type CarrierCodec,
  type CarrierEvent,
  type Wire,
} from "../../../../src/protocol/carrier/carrier.ts";
import { bytesPerMs } from "../../../../src/protocol/carrier/carrier-format.ts";
import { DIALECTS } from "../../../../src/protocol/carrier/index.ts";

const FOLDER = new URL("golden/", import.meta.url).pathname;
const transcripts = readdirSync(FOLDER).map((file) => file.replace(/\.txt$/, ""));
const dialectOf = (transcript: string) =>
  DIALECTS[CARRIERS.find((name) => transcript.startsWith(name)) ?? "twilio"];

class Replay {
  readonly #query = new Map<string, string>();
  #codec: CarrierCodec | null = null;
  #frameBytes = 0;
  readonly #transcript: string;

  constructor(transcript: string) {
    this.#transcript = transcript;
  }

  /** What comes of one line, as a transcript writes it. */
  play(line: string): readonly string[] {
    const [sign = "", ...words] = line.split(" ");
    const rest = line.slice(sign.length + 1);
    if (sign === "query") this.#query.set(words[0] ?? "", words[1] ?? "");
    if (sign === "<") return this.#read(rest);
    if (sign === "<b") return this.#read(Buffer.from(rest, "hex"));
    return sign === "!" ? this.#act(words).map(wireLine) : [];
  }

  get #opened(): CarrierCodec {
    this.#codec ??= dialectOf(this.#transcript).open({ query: this.#query, headers: new Map() });
    return this.#codec;
  }

  #read(message: Wire): readonly string[] {
    const events = this.#opened.read(message);
    for (const event of events) {
      if (event.kind === "started") this.#frameBytes = bytesPerMs(event.call.format) * event.call.frameMs;
    }
    return events.map(eventLine);
  }

  #act([action, first = "", second = ""]: readonly string[]): readonly Wire[] {
    switch (action) {
      case "audio": {
        const numbers = Array.from({ length: Number(second) }, (_, i) => Number(first) + i);
        return this.#opened.audio(numbers.map((n) => frameOf(n, this.#frameBytes)));
      }
      case "bytes":
        return this.#opened.audio([Buffer.from(first, "hex")]);
      case "mark": {
        const mark = this.#opened.mark(first);
        return mark === null ? [] : [mark];
      }
      case "clear":
        return this.#opened.clear();
      case "flush":
        return this.#opened.flush();
      case "hangUp":
        return this.#opened.hangUp();
      default:
        throw new Error(`The transcript does what is not known: ${action}`);
    }
  }
}

const frameOf = (n: number, bytes: number) =>
  Uint8Array.from({ length: bytes }, (_, i) => (31 * n + i) % 251);
const wireLine = (wire: Wire) =>
  typeof wire === "string" ? `> ${wire}` : `>b ${Buffer.from(wire).toString("hex")}`;
const eventLine = (event: CarrierEvent) =>
  `= ${JSON.stringify(event.kind === "media" ? { ...event, audio: Buffer.from(event.audio).toString("hex") } : event)}`;
/** Events are compared as objects: the order of their fields is nobody's business. */
const comparable = (line: string) => (line.startsWith("= ") ? (JSON.parse(line.slice(2)) as unknown) : line);

describe("calls as vendors document them", () => {
  it("there is one of every carrier", () => {
    expect(CARRIERS.filter((name) => !transcripts.some((transcript) => transcript.startsWith(name)))).toEqual(
      [],
    );
  });

  it.each(transcripts)("%s", (transcript) => {
    const replay = new Replay(transcript);
    const lines = readFileSync(`${FOLDER}${transcript}.txt`, "utf8").split("\n");
    const steps: { cause: string; expected: string[] }[] = [];
    for (const line of lines.filter((each) => each !== "" && !each.startsWith("#"))) {
      if (/^(=|>|>b) /.test(line)) steps.at(-1)?.expected.push(line);
      else steps.push({ cause: line, expected: [] });
    }
    for (const { cause, expected } of steps) {
      expect(replay.play(cause).map(comparable), cause).toEqual(expected.map(comparable));
    }
  });
});
