/**
 * An upstream that dies at every byte of its answer: what the embedded service said is served again by a bare socket and
 * cut there. No word is lost, none is emitted twice, and each sounds at its time; what is asked for again is answered.
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { SILENCE_LEVEL } from "../../src/audio/analysis/silence.ts";
import { decodeUlaw } from "../../src/audio/codecs/g711.ts";
import type { Event, Word } from "../../src/protocol/events.ts";
import { type RunningService, startService } from "../../src/service/service.ts";
import { missingForSpeech } from "../cli/program.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const RATE = 8000;
const SHORT = "I do.";
const LONG = "The quick brown fox jumps over the lazy dog. Then it sleeps, and nobody dares to wake it.";
const SESSIONS_AT_ONCE = 32;
const UTTERANCES_A_SESSION = 20;
/** The stretch of a word's sound that is looked for. */
const NEEDLE_FROM_MS = 15;
const NEEDLE_MS = 40;
const MAX_ERROR_MS = 20;

interface Recorded {
  /** As it comes over the wire, head and chunks. */
  readonly bytes: Buffer;
  readonly audio: Buffer;
  /** Where its characters begin, ms. */
  readonly startsMs: readonly number[];
}

interface Line {
  readonly audio_base64: string;
  readonly alignment: { readonly character_start_times_seconds: number[] } | null;
}

/** Asks the service, and keeps what it answered. */
class Recorder {
  readonly #serviceUrl: string;
  readonly #voiceId: string;
  readonly #recorded = new Map<string, Promise<Recorded>>();

  constructor(serviceUrl: string, voiceId: string) {
    this.#serviceUrl = serviceUrl;
    this.#voiceId = voiceId;
  }

  of(text: string): Promise<Recorded> {
    const known = this.#recorded.get(text) ?? this.#record(text);
    this.#recorded.set(text, known);
    return known;
  }

  all(): Promise<Recorded[]> {
    return Promise.all(this.#recorded.values());
  }

  async #record(text: string): Promise<Recorded> {
    const path = `/v1/text-to-speech/${this.#voiceId}/stream/with-timestamps?output_format=ulaw_${RATE}`;
    const answer = await fetch(`${this.#serviceUrl}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text }),
    });
    const lines = (await answer.text()).split("\n").filter((line) => line !== "");
    const chunks = lines.map((line) => `${(line.length + 1).toString(16)}\r\n${line}\n\r\n`);
    const head = ["content-type", "request-id", "character-cost", "transfer-encoding"]
      .map((name) => `${name}: ${answer.headers.get(name) ?? ""}\r\n`)
      .join("");
    const records = lines.map((line) => JSON.parse(line) as Line);
    return {
      bytes: Buffer.from(`HTTP/1.1 ${answer.status} OK\r\n${head}\r\n${chunks.join("")}0\r\n\r\n`, "latin1"),
      audio: Buffer.concat(records.map((record) => Buffer.from(record.audio_base64, "base64"))),
      startsMs: records.flatMap(
        (record) => record.alignment?.character_start_times_seconds.map((seconds) => seconds * 1000) ?? [],
      ),
    };
  }
}

/** Serves what was recorded; the first request of voice `kill-RUN-N` is cut off behind byte N. */
class DyingServer {
  readonly #recorder: Recorder;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #seen = new Set<string>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let asked = Buffer.alloc(0);
    socket.setNoDelay(true);
    // A gateway that gives up closes its side: nothing to do here.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (piece: Buffer) => {
      asked = Buffer.concat([asked, piece]);
      const headEnd = asked.indexOf("\r\n\r\n");
      if (headEnd < 0) return;
      const head = asked.subarray(0, headEnd).toString("latin1");
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? "0");
      const end = headEnd + 4 + length;
      if (asked.length < end) return;
      const body = asked.subarray(headEnd + 4, end).toString();
      asked = asked.subarray(end);
      void this.#answer(socket, head, body);
    });
  }

  async #answer(socket: Socket, head: string, body: string): Promise<void> {
    if (!head.startsWith("POST")) {
      socket.write("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const { bytes } = await this.#recorder.of((JSON.parse(body) as { text: string }).text);
    const voice = /text-to-speech\/(kill-\d+-(\d+))/.exec(head);
    if (voice === null || this.#seen.has(voice[1] ?? "")) {
      socket.write(bytes);
      return;
    }
    this.#seen.add(voice[1] ?? "");
    const at = Number(voice[2]);
    // Closed properly and torn down by turns.
    socket.write(bytes.subarray(0, at), () => (at % 2 === 0 ? socket.resetAndDestroy() : socket.end()));
  }
}

interface Received {
  readonly events: readonly Event[];
  readonly words: readonly Word[];
  /** All that the connection has got, from the beginning of the timeline. */
  readonly audio: Buffer;
}

/** Says the text through a connection that stands, and collects what comes for it. */
async function say(client: TestClient, text: string, at: number): Promise<Received> {
  const first = client.messages.length;
  client.send({ type: "speak", text, voice_id: voiceOf(text, at) });
  await client.until(() => {
    const last = client.messages.at(-1);
    return (
      client.messages.length > first &&
      last !== undefined &&
      "event" in last &&
      last.event.type === "utterance.done"
    );
  });
  const events = client.messages
    .slice(first)
    .flatMap((message) => ("event" in message ? [message.event] : []));
  let words: Word[] = [];
  for (const event of events) {
    if (event.type === "words") words.push(...event.words);
    if (event.type !== "warning") continue;
    const start = event.start ?? text.length;
    words = words.filter((word) => word.start < start);
  }
  return { events, words, audio: client.audio };
}

/** Every byte; inside of long runs of base64, where all bytes are alike, each thirteenth: at all four places of a group. */
function placesOf({ bytes }: Recorded): number[] {
  const runs = [...bytes.toString("latin1").matchAll(/[A-Za-z0-9+/]{64,}/g)].map(({ index, 0: run }) => ({
    from: index + 8,
    to: index + run.length - 8,
  }));
  const isAlike = (at: number): boolean =>
    runs.some(({ from, to }) => from < at && at < to && (at - from) % 13 !== 0);
  return Array.from({ length: bytes.length }, (_, at) => at).filter((at) => !isAlike(at));
}

function voiceOf(text: string, at: number): string {
  return `kill-${text.length}-${at}`;
}

function isLoud(audio: Buffer): boolean {
  return decodeUlaw(audio).some((sample) => Math.abs(sample) > 1000);
}

/**
 * How far from the beginning of any character the service spoke this sound, ms; null where it did not speak it. Silence
 * between the beginning of a response's first character and its sound does not count: the gateway drops it at a splice.
 */
function errorOf(needle: Buffer, recorded: readonly Recorded[]): number | null {
  for (const { audio, startsMs } of recorded) {
    const at = audio.indexOf(needle);
    if (at < 0) continue;
    const startedMs = (at / RATE) * 1000 - NEEDLE_FROM_MS;
    const silenceMs =
      (decodeUlaw(audio).findIndex((sample) => Math.abs(sample) > SILENCE_LEVEL) / RATE) * 1000;
    if (startedMs <= silenceMs) return 0;
    return Math.min(...startsMs.map((ms) => Math.abs(ms - startedMs)));
  }
  return null;
}

/** Everything was emitted and can be heard; returns how many words were looked for in the audio. */
function expectWhole(said: {
  text: string;
  at: number;
  received: Received;
  recorded: readonly Recorded[];
}): number {
  const { text, at, received, recorded } = said;
  const { words, events, audio } = received;
  const where = `killed behind byte ${at}`;
  expect(events.at(-1), where).toMatchObject({ type: "utterance.done", outcome: "done" });
  expect(
    events.filter((event) => event.type === "error"),
    where,
  ).toEqual([]);
  expect(
    words.map((word) => word.text),
    where,
  ).toEqual(text.match(/[A-Za-z]+/g));
  expect(
    words.every((word) => text.slice(word.start, word.end) === word.text),
    where,
  ).toBe(true);
  const times = words.flatMap((word) => [word.start_ms, word.end_ms]);
  expect(times, where).toEqual([...times].sort((a, b) => a - b));
  let found = 0;
  for (const word of words) {
    const from = Math.round(((word.start_ms + NEEDLE_FROM_MS) * RATE) / 1000);
    const needle = audio.subarray(from, from + (NEEDLE_MS * RATE) / 1000);
    if (word.end_ms - word.start_ms < NEEDLE_FROM_MS + NEEDLE_MS || !isLoud(needle)) continue;
    const error = errorOf(needle, recorded);
    expect(error, `${where}: ${word.text}`).not.toBeNull();
    expect(error, `${where}: ${word.text}`).toBeLessThanOrEqual(MAX_ERROR_MS);
    found += 1;
  }
  return found;
}

const missing = missingForSpeech() ?? undefined;

describe.skipIf(missing !== undefined)(
  `an upstream that dies${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let service: RunningService;
    let recorder: Recorder;
    let server: DyingServer;
    let gateway: TestGateway;

    beforeAll(async () => {
      service = await startService({ host: "127.0.0.1", port: 0 });
      const { voices } = (await (await fetch(`${service.url}/v1/voices`)).json()) as {
        voices: { voice_id: string }[];
      };
      recorder = new Recorder(service.url, voices[0]?.voice_id ?? "");
      server = new DyingServer(recorder);
      gateway = await gatewayAt(await server.listen(), { graceMs: 0 });
    });

    afterAll(async () => {
      await gateway?.close();
      await server?.close();
      await service?.close();
    });

    /** Says the text once for each place; returns how many words were found in the audio. */
    async function sayAll(text: string, places: readonly number[]): Promise<number> {
      let next = 0;
      let found = 0;
      const some = async (session: number): Promise<void> => {
        while (next < places.length) {
          const own = places.slice(next, next + UTTERANCES_A_SESSION);
          next += own.length;
          const id = `${text.length}-${session}-${own[0] ?? 0}`;
          await using client = await TestClient.connect(
            gateway,
            `/live/${id}?format=ulaw_${RATE}&pace=burst`,
          );
          for (const at of own) {
            const received = await say(client, text, at);
            const recorded = await recorder.all();
            found += expectWhole({ text, at, received, recorded });
          }
        }
      };
      await Promise.all(Array.from({ length: SESSIONS_AT_ONCE }, (_, session) => some(session)));
      return found;
    }

    it("at every byte of a short text", async () => {
      const places = placesOf(await recorder.of(SHORT));
      const found = await sayAll(SHORT, places);
      expect(found).toBeGreaterThan(places.length);
    });

    it("at places all over a longer one", async () => {
      const { bytes } = await recorder.of(LONG);
      const count = 80;
      const places = Array.from({ length: count }, (_, index) =>
        Math.floor(((index + 0.5) * bytes.length) / count),
      );
      const found = await sayAll(LONG, places);
      expect(found).toBeGreaterThan(places.length * 8);
    });
  },
);
