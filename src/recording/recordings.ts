/** The folder of recordings: which sessions are recorded, and how much of the disk they may take. */
import { randomBytes } from "node:crypto";
import { accessSync, constants, mkdirSync, readdirSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { RecordingFigures } from "../metrics/prometheus.ts";
import type { SessionRecorder } from "../session/sessions.ts";
import { VERSION } from "../version.ts";
import { Encoder } from "./encode.ts";
import { END_REASONS, type EndReason, type Head, RECORDING_SUFFIX, RECORDING_VERSION } from "./format.ts";
import { Recorder } from "./recorder.ts";
import { type RecordingDisk, RecordingFile, recordingDisk } from "./recording-file.ts";

const OWNER_ALONE = 0o700;
/** Room on the disk that recordings leave to others. */
const KEPT_FREE_BYTES = 256 * 1024 * 1024;
const CHECK_FREE_MS = 5000;
const MB = 1024 * 1024;
/** So much has to be free in a folder that was full before anything is recorded again. */
const MIN_ROOM_BYTES = MB;

export interface RecordingsOptions {
  readonly folder: string;
  readonly isRedacted: boolean;
  /** The largest recording of one session. */
  readonly maxSessionMb: number;
  /** The most that all files of the folder may take. */
  readonly maxFolderMb: number;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly log: Logger;
  /** Default: the real one. */
  readonly disk?: RecordingDisk & { free(folder: string): Promise<number> };
}

/** `failing`: nothing could be written last; `full`: there is no room for more. */
export type RecordingsState = "ok" | "full" | "failing";

const DISK = {
  ...recordingDisk,
  free: async (folder: string): Promise<number> => {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  },
};

export class Recordings implements SessionRecorder {
  readonly #options: RecordingsOptions;
  readonly #disk: NonNullable<RecordingsOptions["disk"]>;
  readonly #open = new Set<RecordingFile>();
  /** All reasons from the start: an alert sees a counter rise, not appear. */
  readonly #ended = new Map<EndReason, number>(END_REASONS.map((reason) => [reason, 0]));
  /** Files that are being closed. */
  readonly #closing = new Set<Promise<void>>();
  /** Reasons that were logged since something was recorded to its end. */
  readonly #noted = new Set<EndReason>();
  #folderBytes: number;
  #writtenBytes = 0;
  #isDiskLow = false;
  /** Something did not fit into the folder, and nothing was deleted since. */
  #isFolderFull = false;
  #isFailing = false;
  #isClosed = false;
  #checkTimer: Timer | null = null;

  /** Throws invalid_config where the folder can't be written. */
  constructor(options: RecordingsOptions) {
    this.#options = options;
    this.#disk = options.disk ?? DISK;
    this.#folderBytes = openFolder(options.folder);
    this.#checkFree();
  }

  get figures(): RecordingFigures {
    return {
      open: this.#open.size,
      ended: this.#ended,
      writtenBytes: this.#writtenBytes,
      folderBytes: this.#folderBytes,
    };
  }

  get state(): RecordingsState {
    if (this.#isFailing) return "failing";
    return this.#refusal(0) === null ? "ok" : "full";
  }

  begin({
    id,
    epoch,
    settings,
    server,
  }: Parameters<SessionRecorder["begin"]>[0]): ReturnType<SessionRecorder["begin"]> {
    if (this.#isClosed) return null;
    const refused = this.#refusal(0);
    if (refused !== null) {
      this.#count(refused, null);
      return null;
    }
    const { folder, clock, wallMs, isRedacted, maxSessionMb } = this.#options;
    const at = new Date(wallMs()).toISOString();
    const name = `${at.replaceAll(":", "-")}_${id}_${randomBytes(4).toString("hex")}${RECORDING_SUFFIX}`;
    const file: RecordingFile = new RecordingFile({
      path: join(folder, name),
      disk: this.#disk,
      clock,
      maxBytes: maxSessionMb * MB,
      room: { take: (bytes) => this.#take(bytes) },
      onEnd: (reason, thrown) => this.#over(file, reason, thrown),
    });
    this.#open.add(file);
    const encoder = new Encoder({ isRedacted });
    const head: Head = {
      voicewire_recording: RECORDING_VERSION,
      version: VERSION,
      at,
      at_ms: clock.nowMs(),
      session: id,
      epoch,
      server,
      text: isRedacted ? "hashed" : "kept",
      settings: encoder.value(settings),
    };
    file.line(JSON.stringify(head));
    const tape = new Recorder({ clock, encoder, isRedacted, sink: file });
    return { tape, end: () => queueMicrotask(() => file.end("closed")) };
  }

  /** Every recording ends. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#checkTimer?.cancel();
    for (const file of [...this.#open]) file.end("shutdown");
    await Promise.all(this.#closing);
  }

  #over(file: RecordingFile, reason: EndReason, thrown: unknown): void {
    this.#open.delete(file);
    this.#count(reason, thrown);
    const closing = file.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  #count(reason: EndReason, thrown: unknown): void {
    this.#ended.set(reason, (this.#ended.get(reason) ?? 0) + 1);
    this.#isFailing = reason === "disk" || reason === "lost";
    if (reason === "closed") this.#noted.clear();
    if (
      reason === "closed" ||
      reason === "shutdown" ||
      reason === "zero_retention" ||
      this.#noted.has(reason)
    )
      return;
    this.#noted.add(reason);
    const detail = thrown === null ? undefined : toGatewayError(thrown).message;
    this.#options.log.error({ reason, detail }, "A session is not recorded any more; speech goes on");
  }

  #take(bytes: number): EndReason | null {
    const refused = this.#refusal(bytes);
    if (refused !== null) {
      this.#isFolderFull = refused === "folder_full";
      return refused;
    }
    this.#folderBytes += bytes;
    this.#writtenBytes += bytes;
    return null;
  }

  #refusal(bytes: number): EndReason | null {
    if (this.#isDiskLow) return "disk";
    const isFull = this.#isFolderFull || this.#folderBytes + bytes > this.#options.maxFolderMb * MB;
    return isFull ? "folder_full" : null;
  }

  #checkFree(): void {
    const { clock, folder, log } = this.#options;
    this.#disk.free(folder).then(
      (bytes) => {
        this.#isDiskLow = bytes < KEPT_FREE_BYTES;
      },
      (thrown: unknown) => log.debug({ err: thrown }, "Free space of the disk of recordings is not known"),
    );
    this.#checkTimer = clock.at(clock.nowMs() + CHECK_FREE_MS, () => {
      this.#folderBytes = bytesIn(folder) ?? this.#folderBytes;
      const freeBytes = this.#options.maxFolderMb * MB - this.#folderBytes;
      if (freeBytes > MIN_ROOM_BYTES) this.#isFolderFull = false;
      this.#checkFree();
    });
  }
}

/** Makes it where it is missing; the bytes of what is in it. Throws invalid_config. */
export function openFolder(folder: string): number {
  try {
    mkdirSync(folder, { recursive: true, mode: OWNER_ALONE });
    accessSync(folder, constants.W_OK | constants.X_OK);
    return bytesIn(folder) ?? 0;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `Setting record: the folder can't be written: ${why}. Expected a folder that the gateway may write to`;
    throw new GatewayError("invalid_config", message, { field: "record", cause });
  }
}

/** Size of all recordings; null: the folder can't be read now. Files that are just deleted do not count. */
function bytesIn(folder: string): number | null {
  let bytes = 0;
  try {
    for (const name of readdirSync(folder)) {
      if (!name.endsWith(RECORDING_SUFFIX)) continue;
      bytes += statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
    }
    return bytes;
  } catch {
    return null;
  }
}
