/** The speech service in a process of its own: what it says of a text is the truth, and gateways ask it over a link. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { wait } from "../kit/monotonic.ts";

/** By this name it is reached, too, where a hosts file has it. */
export const SERVICE_NAME = "speech.chaos.test";
const READY_DEADLINE_MS = 30_000;
const ANSWER_DEADLINE_MS = 30_000;

export interface Truth {
  readonly audio: Uint8Array;
  /** Of the whole answer over HTTP, about: its body. */
  readonly answerBytes: number;
}

export class ServiceProgram implements AsyncDisposable {
  readonly port: number;
  readonly #child: ChildProcess;
  #voiceId = "";

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  /** `distUrl`: file URL of the build, slash at the end. */
  static async start(distUrl: string): Promise<ServiceProgram> {
    const main = fileURLToPath(new URL("main.js", distUrl));
    const args = ["service", "--port", "0", "--log-level", "error", "--allowed-hosts", SERVICE_NAME];
    const child = spawn(main, args, { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.on("data", (data: Buffer) => {
      said += data.toString();
    });
    for (let waitedMs = 0; waitedMs < READY_DEADLINE_MS && child.exitCode === null; waitedMs += 50) {
      const [, port] = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said) ?? [];
      if (port !== undefined) {
        const service = new ServiceProgram(child, Number(port));
        await service.#findVoice();
        return service;
      }
      await wait(50);
    }
    child.kill("SIGKILL");
    throw new Error("voicewire service did not start");
  }

  get voiceId(): string {
    return this.#voiceId;
  }

  async truthOf(text: string, seed: number): Promise<Truth> {
    const path = `v1/text-to-speech/${this.#voiceId}/stream/with-timestamps?output_format=ulaw_8000`;
    const answer = await fetch(`http://127.0.0.1:${this.port}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text, seed }),
      signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
    });
    if (!answer.ok) throw new Error(`The service answered ${answer.status}, expected speech`);
    const body = await answer.text();
    const lines = body.split("\n").filter((line) => line !== "");
    const records = lines.map((line) => JSON.parse(line) as { readonly audio_base64: string });
    return {
      audio: Buffer.concat(records.map((record) => Buffer.from(record.audio_base64, "base64"))),
      answerBytes: body.length,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => {
      this.#child.once("exit", () => resolve());
    });
    this.#child.kill("SIGKILL");
    await ended;
  }

  async #findVoice(): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${this.port}/v1/voices`);
    const { voices } = (await answer.json()) as { readonly voices: readonly { readonly voice_id: string }[] };
    this.#voiceId = voices[0]?.voice_id ?? "";
  }
}
