/** The EventSource of others follows captions over a network that breaks in the middle. */
import { describe, expect, it } from "vitest";
import type { CueEvent, WordsEvent } from "../../src/protocol/events.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { areInstalled, IF_INSTALLED, importFrom } from "./installed.ts";

interface Message {
  readonly data: string;
  readonly lastEventId: string;
}
interface Source {
  /** 2: closed, for good. */
  readonly readyState: number;
  addEventListener(type: string, listener: (message: Message) => void): void;
  close(): void;
}
interface Init {
  readonly headers: Readonly<Record<string, string>>;
}
interface Package {
  readonly EventSource: new (
    url: string,
    options: { readonly fetch: (url: string | URL, init: Init) => Promise<Response> },
  ) => Source;
}

const SENTENCES = [
  "The first of them is here.",
  "The second one is a little longer than that.",
  "A third one follows it.",
  "Then the fourth is heard by everybody.",
  "And that is the fifth and the last.",
];
const EVENTS = ["cue", "words", "utterance.started", "utterance.done"] as const;
/** The gateway asks for a second before each return. */
const PATIENT_MS = 60_000;

/** What one EventSource got, in order, and the places from which it asked to go on. */
class Follower implements AsyncDisposable {
  readonly received: { readonly type: string; readonly id: string; readonly data: string }[] = [];
  readonly hellos: { readonly resumed?: boolean }[] = [];
  readonly askedFrom: (string | undefined)[] = [];
  readonly #source: Source;

  constructor({ EventSource }: Package, url: string) {
    this.#source = new EventSource(url, {
      fetch: (target, init) => {
        this.askedFrom.push(init.headers["Last-Event-ID"]);
        return fetch(target, init);
      },
    });
    this.#source.addEventListener("hello", ({ data }) => this.hellos.push(JSON.parse(data)));
    for (const type of EVENTS)
      this.#source.addEventListener(type, ({ data, lastEventId }) =>
        this.received.push({ type, id: lastEventId, data }),
      );
  }

  get hasGivenUp(): boolean {
    return this.#source.readyState === 2;
  }

  of<T>(type: (typeof EVENTS)[number]): T[] {
    return this.received.filter((one) => one.type === type).map(({ data }) => JSON.parse(data) as T);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#source.close();
  }
}

describe.skipIf(!areInstalled("eventsource"))(`eventsource ${IF_INSTALLED}`, { timeout: PATIENT_MS }, () => {
  it("comes back by itself after each break, and no cue is missing or comes twice", async () => {
    await using upstream = await startFakeUpstream(speaking({ msPerChar: 30 }));
    await using gateway = await gatewayAt(upstream.url);
    await using proxy = await CuttingProxy.start(gateway.url);
    await using speaker = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&events=cues,words");
    await speaker.next("hello");
    await using follower = new Follower(
      await importFrom<Package>("eventsource"),
      `${proxy.url}/live/s/captions`,
    );
    await until("it is there", () => follower.hellos.length === 1, { deadlineMs: PATIENT_MS });
    speaker.send({ type: "speak", text: SENTENCES.join(" "), voice_id: "v" });

    for (const count of [1, 2]) {
      const before = follower.of("cue").length;
      await until("a cue", () => follower.of("cue").length > before, { deadlineMs: PATIENT_MS });
      const lastId = follower.received.at(-1)?.id;
      proxy.cut();
      await until("it is back", () => follower.hellos.length === count + 1, { deadlineMs: PATIENT_MS });
      expect(follower.askedFrom.at(-1)).toBe(lastId);
      expect(follower.hellos.at(-1)).toMatchObject({ resumed: true });
    }
    await until("the end", () => follower.of("utterance.done").length === 1, { deadlineMs: PATIENT_MS });
    await speaker.next("utterance.done");

    expect(proxy.opened).toBe(3);
    expect(follower.askedFrom[0]).toBeUndefined();
    const ids = follower.received.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    // Numbers are each listener's own; all else is the same for one who was never away.
    const timed = ({ start_ms, end_ms, lines }: CueEvent) => ({ start_ms, end_ms, lines });
    expect(follower.of<CueEvent>("cue").map(timed)).toEqual(speaker.eventsOf("cue").map(timed));
    expect(follower.of<WordsEvent>("words").flatMap(({ words }) => words)).toEqual(
      speaker.eventsOf("words").flatMap(({ words }) => words),
    );
    expect(
      follower
        .of<CueEvent>("cue")
        .flatMap(({ lines }) => lines.map((line) => line.text))
        .join(" "),
    ).toBe(SENTENCES.join(" "));
  });

  it("a session that nobody has is an end, not asked for again and again", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using follower = new Follower(
      await importFrom<Package>("eventsource"),
      `${gateway.url}/live/nobody/captions`,
    );
    await until("it has given up", () => follower.hasGivenUp);
    expect(follower.askedFrom).toEqual([undefined]);
    expect(follower.hellos).toEqual([]);
  });
});
