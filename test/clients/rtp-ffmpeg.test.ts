/**
 * ffmpeg as the telephone: it takes our RTP by an SDP file, and what it decodes is what the upstream said. It sends no RTP
 * itself, so it is called with `listen_only`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { decodeSamples } from "../../src/audio/codecs/samples.ts";
import { hasProgram, PATIENT, temporaryFolder } from "../cli/program.ts";
import { type FakeUpstream, ndjsonSpeech, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

vi.setConfig(PATIENT);

const MS_PER_CHARACTER = 60;
const TEXT = "alpha bravo charlie delta echo foxtrot golf";
const FRAME_SAMPLES = 160;

/** A UDP port of loopback that is free and even, so that the next one is for RTCP. */
async function freeRtpPort(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const socket = createSocket("udp4").bind(0, "127.0.0.1");
    await once(socket, "listening");
    const { port } = socket.address();
    socket.close();
    await once(socket, "close");
    if (port % 2 === 0) return port;
  }
  throw new Error("No even port is free");
}

/** Whether a program listens there: a call to a port that is closed ends at once. */
function isOpen(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  return new RegExp(`^ *\\d+: [0-9A-F]+:${hex} `, "m").test(readFileSync("/proc/net/udp", "utf8"));
}

/** Receives by SDP and decodes to 16-bit samples at 8 kHz. */
class FfmpegPhone implements AsyncDisposable {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #pcm: Buffer[] = [];
  log = "";

  private constructor(port: number, sdpPath: string) {
    this.port = port;
    // The SDP says all: nothing has to be found out by listening for seconds.
    const input = ["-protocol_whitelist", "file,udp,rtp", "-analyzeduration", "100000", "-i", sdpPath];
    const output = ["-f", "s16le", "-ar", "8000", "-ac", "1", "pipe:1"];
    this.#child = spawn("ffmpeg", ["-hide_banner", "-nostats", "-v", "info", ...input, ...output], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child.stdout?.on("data", (piece: Buffer) => this.#pcm.push(piece));
    this.#child.stderr?.on("data", (piece: Buffer) => {
      this.log += piece.toString();
    });
  }

  static async start(payloadType: number, sdpPath: string): Promise<FfmpegPhone> {
    const port = await freeRtpPort();
    const lines = ["v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=call", "c=IN IP4 127.0.0.1", "t=0 0"];
    writeFileSync(sdpPath, `${[...lines, `m=audio ${port} RTP/AVP ${payloadType}`].join("\r\n")}\r\n`);
    return new FfmpegPhone(port, sdpPath);
  }

  get samples(): Int16Array {
    const pcm = Buffer.concat(this.#pcm);
    return Int16Array.from({ length: pcm.length >> 1 }, (_, index) => pcm.readInt16LE(index * 2));
  }

  /** Ends as a user ends it, so that all that was decoded is written. */
  async hangUp(): Promise<void> {
    this.#child.kill("SIGINT");
    await once(this.#child, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "close");
  }
}

/** Frames that are not silence: a machine that is held up may put silence between. `silence`: as it is decoded. */
function soundOf(samples: Int16Array, silence: number): number[] {
  const frames: number[][] = [];
  for (let at = 0; at < samples.length; at += FRAME_SAMPLES)
    frames.push([...samples.subarray(at, at + FRAME_SAMPLES)]);
  return frames.filter((frame) => frame.some((sample) => sample !== silence)).flat();
}

describe.skipIf(!hasProgram("ffmpeg"))("RTP to ffmpeg (skipped where it is not installed)", () => {
  let upstream: FakeUpstream;
  let gateway: TestGateway;
  const folder = temporaryFolder();

  beforeAll(async () => {
    upstream = await startFakeUpstream(speaking({ msPerChar: MS_PER_CHARACTER }));
    gateway = await gatewayAt(upstream.url, { trimMs: 0, rtpListenOnly: true });
  });
  afterAll(async () => {
    await gateway?.close();
    await upstream?.close();
    folder[Symbol.dispose]();
  });

  it.each([
    ["ulaw", 0, 0],
    ["alaw", 8, 8],
  ] as const)("%s (payload type %i): every sample, and no packet is missed", async (law, type, silence) => {
    const format = `${law}_8000`;
    const session = `ffmpeg-${law}`;
    await using controller = await TestClient.connect(gateway, `/live/${session}?role=speaker&events=call`);
    await using phone = await FfmpegPhone.start(type, folder.file(`${law}.sdp`));
    await until("it listens", () => isOpen(phone.port), { deadlineMs: 60_000 });
    const body = JSON.stringify({ session, format, remote: `127.0.0.1:${phone.port}`, listen_only: true });
    const taken = await fetch(`${gateway.url}/carrier/rtp`, { method: "POST", body });
    expect(taken.status).toBe(201);
    const { call_id } = (await taken.json()) as { call_id: string };
    await until("it hears silence", () => phone.samples.length > 0, { deadlineMs: 60_000 });

    controller.send({ type: "speak", text: TEXT });
    await controller.next("utterance.done");
    const spoken = decodeSamples(
      law,
      ndjsonSpeech({ text: TEXT, msPerChar: MS_PER_CHARACTER, format }).audio,
    );
    const expected = soundOf(Int16Array.from(spoken), silence);
    const heard = (): number[] => soundOf(phone.samples, silence);
    await until("it has heard all", () => heard().length >= expected.length, { deadlineMs: 60_000 });
    // In this order: it looks for the signal between packets.
    await phone.hangUp();
    await fetch(`${gateway.url}/carrier/rtp/${call_id}`, { method: "DELETE" });

    expect(heard()).toEqual(expected);
    expect(phone.log).toContain(`Audio: pcm_${law === "ulaw" ? "mulaw" : "alaw"}`);
    expect(phone.log).not.toMatch(/RTP: |missed|dropp|out of order|jitter/i);
  });
});
