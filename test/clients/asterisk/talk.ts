/** Calls of the Asterisk tests: the ways they come, and what is done with one. */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestClient } from "../../helpers/start-gateway.ts";
import { until } from "../../helpers/until.ts";
import type { AsteriskCall } from "./asterisk-server.ts";
import { ASTERISK_FORMATS, type RecordedFormat, Recording } from "./recording.ts";
import { type Marks, PATIENCE, type Rig } from "./rig.ts";

/** Pressed by the caller `keys`. */
export const KEYS = "159#";

/** One of the ways in which Asterisk can call the gateway. */
export interface Way {
  readonly carrier: "asterisk" | "audiosocket" | "rtp";
  /** Without it by ARI's externalMedia. */
  readonly gateway?: AsteriskCall["gateway"];
  readonly format: RecordedFormat;
  readonly variables: Readonly<Record<string, string>>;
}

export const webSocket = (
  over: { control?: string; connection?: string; format?: RecordedFormat } = {},
): Way => {
  const { control = "json", connection = "gateway", format = "ulaw_8000" } = over;
  return {
    carrier: "asterisk",
    gateway: "websocket",
    format,
    variables: { CONNECTION: connection, CONTROL: control, FORMAT: ASTERISK_FORMATS[format].name },
  };
};
export const rtp: Way = { carrier: "rtp", format: "ulaw_8000", variables: {} };
export const audioSocket: Way = {
  carrier: "audiosocket",
  gateway: "audiosocket",
  format: "pcm_8000",
  variables: {},
};
export const audioSocketChannel: Way = {
  carrier: "audiosocket",
  gateway: "audiosocket-channel",
  format: "pcm_16000",
  variables: { FORMAT: "slin16" },
};

/** A second of sound that nothing else makes: no two frames are the same. */
export function voiceIn(format: RecordedFormat): Buffer {
  const bytes = ASTERISK_FORMATS[format].frameBytes * 50;
  return Buffer.from(Array.from({ length: bytes }, (_, at) => 1 + (Math.imul(at + 1, 0x9e3779b1) >>> 25)));
}

/** One call: the session's application and a second listener, and what Asterisk records for the caller. */
export class Talk implements AsyncDisposable {
  readonly application: TestClient;
  /** Hears the session as a client does. */
  readonly listener: TestClient;
  readonly recording: Recording;
  readonly channel: string;
  readonly uuid: string;
  readonly #way: Way;
  readonly #rig: Rig;

  private constructor(
    rig: Rig,
    way: Way,
    parts: Pick<Talk, "uuid" | "application" | "listener" | "recording" | "channel">,
  ) {
    this.#rig = rig;
    this.#way = way;
    ({
      application: this.application,
      listener: this.listener,
      recording: this.recording,
      channel: this.channel,
      uuid: this.uuid,
    } = parts);
  }

  /** Resolves when the gateway has announced the call. */
  static async begin(rig: Rig, way: Way, caller: AsteriskCall["caller"] = "record"): Promise<Talk> {
    const { asterisk, gateway } = rig;
    const uuid = randomUUID();
    const session = way.gateway?.startsWith("audiosocket") === true ? `audiosocket-${uuid}` : uuid;
    const { name, extension } = ASTERISK_FORMATS[way.format];
    const path = join(asterisk.folder, uuid);
    const recording = new Recording(`${path}.${extension}`, way.format);
    if (caller === "say") writeFileSync(recording.file, voiceIn(way.format));
    const events = "role=speaker&events=words,call,dtmf";
    const application = await TestClient.connect(gateway, `/live/${session}?${events}&caller=${way.format}`);
    const listener = await TestClient.connect(gateway, `/live/${session}?format=${way.format}&pace=burst`);
    // Playback wants the file's name without its end.
    const file = caller === "say" ? path : recording.file;
    const variables = { ...way.variables, SESSION: session, CALL_UUID: uuid, FILE: file, KEYS };
    const channel =
      way.gateway === undefined
        ? await asterisk.externalMedia(await takeRtpPort(gateway, session), caller, variables)
        : await asterisk.call({ gateway: way.gateway, caller, format: name, variables });
    await application.next("call");
    return new Talk(rig, way, { uuid, application, listener, recording, channel });
  }

  /** Resolves with the speech of it, once all of that has gone out. */
  async say(text: string, count = 1): Promise<Buffer> {
    const before = this.listener.audio.length;
    this.application.send({ type: "speak", text });
    await this.application.next("utterance.done", count);
    return this.listener.audio.subarray(before);
  }

  /** Until Asterisk has played every mark asked for since then, and half a second of the caller's time is over. */
  async playedSince(since: Marks): Promise<void> {
    await this.#rig.untilMarks(this.#way, ({ asked, played }) => {
      return asked > since.asked && asked - since.asked === played - since.played;
    });
    await this.passes(500);
  }

  /** Until so much of the caller's time is over, ms: Asterisk sends 20 ms of silence at a time. */
  async passes(ms: number): Promise<void> {
    const before = this.application.frames.length;
    await this.application.until(
      () => this.application.frames.length - before >= ms / 20,
      PATIENCE.deadlineMs,
    );
  }

  /** Hangs up; resolves with all the sound that was recorded, which is in the file only then. */
  async recorded(): Promise<Buffer> {
    await this.end();
    return this.recording.sound;
  }

  /** The caller is heard; then what waits for that begins. */
  async go(): Promise<void> {
    await this.passes(200);
    await this.#rig.asterisk.go(this.uuid);
  }

  /** From Asterisk's side. Idempotent. */
  async end(): Promise<void> {
    await this.#rig.asterisk.hangUp(this.channel);
    await this.#rig.untilNoChannels();
    await until("the call is over", () => this.isOver, PATIENCE);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    await this.application[Symbol.asyncDispose]();
    await this.listener[Symbol.asyncDispose]();
  }

  get isOver(): boolean {
    return this.application.eventsOf("call").some(({ state }) => state === "ended");
  }
}

/** Where Asterisk is to send to, HOST:PORT. */
async function takeRtpPort(gateway: { readonly url: string }, session: string): Promise<string> {
  const body = JSON.stringify({ session });
  const response = await fetch(`${gateway.url}/carrier/rtp`, { method: "POST", body });
  const { host, port } = (await response.json()) as { readonly host: string; readonly port: number };
  return `${host}:${port}`;
}
