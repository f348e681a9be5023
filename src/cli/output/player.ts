/** Plays PCM through a player that the machine has: ffplay, aplay and the like. Its failure never stops the speech. */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import type { Io } from "../io.ts";

/** The format that players are given. */
export const PLAYER_FORMAT = "pcm_24000";
const RATE = "24000";

/** In the order of preference; all read s16le mono from stdin. */
const PLAYERS: readonly (readonly string[])[] = [
  ["pw-cat", "--playback", "--format", "s16", "--rate", RATE, "--channels", "1", "-"],
  ["pacat", "--playback", "--format=s16le", `--rate=${RATE}`, "--channels=1", "--latency-msec=50"],
  ["aplay", "-q", "-t", "raw", "-f", "S16_LE", "-r", RATE, "-c", "1", "-"],
  ["play", "-q", "-t", "raw", "-e", "signed", "-b", "16", "-r", RATE, "-c", "1", "-"],
  [
    "ffplay",
    "-loglevel",
    "quiet",
    "-nodisp",
    "-autoexit",
    "-f",
    "s16le",
    "-ar",
    RATE,
    "-ch_layout",
    "mono",
    "-i",
    "-",
  ],
];

const END_DEADLINE_MS = 2_000;

export interface Player {
  readonly name: string;
  write(frame: Uint8Array): void;
  /** No more frames: resolves when the player has played what it has, or not much later. */
  end(): Promise<void>;
  /** Stops the sound now. */
  stop(): void;
}

/** The first player on the PATH, or undefined where there is none. */
export function findPlayer(env: Io["env"]): readonly string[] | undefined {
  const folders = (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return PLAYERS.find(([name = ""]) => folders.some((folder) => isExecutable(join(folder, name))));
}

export function startPlayer(command: readonly string[]): Player {
  const [name = "", ...args] = command;
  const child = spawn(name, args, { stdio: ["pipe", "ignore", "ignore"] });
  // A machine without a sound device ends its player at once: words and files go on without sound.
  let hasEnded = false;
  const whenEnded: (() => void)[] = [];
  const end = () => {
    hasEnded = true;
    for (const resolve of whenEnded.splice(0)) resolve();
  };
  child.once("error", end);
  child.once("exit", end);
  child.stdin.on("error", end);
  return {
    name,
    write: (frame) => {
      if (!hasEnded) child.stdin.write(frame);
    },
    end: () =>
      new Promise((resolve) => {
        if (hasEnded) {
          resolve();
          return;
        }
        // Some players sit on their last second when their device is gone.
        const timer = setTimeout(() => child.kill(), END_DEADLINE_MS);
        whenEnded.push(() => {
          clearTimeout(timer);
          resolve();
        });
        child.stdin.end();
      }),
    stop: () => {
      if (!hasEnded) child.kill();
    },
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
