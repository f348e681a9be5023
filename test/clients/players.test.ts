/** Players that people have: they join live speech over HTTP in its middle, and play it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, it, vi } from "vitest";
import { hasProgram, PATIENT, temporaryFolder } from "../cli/program.ts";
import { useSpeakingGateway } from "../helpers/speaking-gateway.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

vi.setConfig(PATIENT);

/** VLC refuses to run as root. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

interface Player {
  readonly name: string;
  readonly isThere: boolean;
  /** Plays a URL; what would go to the sound card goes into `file`, as 16-bit samples. */
  play(url: string, file: string): ChildProcess;
}

const PLAYERS: readonly Player[] = [
  {
    name: "ffplay",
    isThere: hasProgram("ffplay"),
    play: (url, file) =>
      spawn("ffplay", ["-nodisp", "-hide_banner", "-v", "error", url], {
        env: { ...process.env, SDL_AUDIODRIVER: "disk", SDL_DISKAUDIOFILE: file },
        stdio: ["ignore", "ignore", "inherit"],
      }),
  },
  {
    name: "VLC",
    isThere: spawnSync("vlc", ["--version"], NOBODY).status === 0,
    play: (url, file) =>
      spawn(
        "vlc",
        ["-I", "dummy", "--quiet", "--aout", "afile", "--no-audiofile-wav", "--audiofile-file", file, url],
        {
          ...NOBODY,
          env: { ...process.env, HOME: dirname(file) },
          stdio: ["ignore", "ignore", "ignore"],
        },
      ),
  },
];

/** Samples of what was played so far that are louder than noise. */
function loudSamples(file: string): number {
  if (!existsSync(file)) return 0;
  const bytes = readFileSync(file);
  let loud = 0;
  for (let at = 0; at + 1 < bytes.length; at += 2) if (Math.abs(bytes.readInt16LE(at)) > 300) loud += 1;
  return loud;
}

describe.concurrent.each(PLAYERS)("$name", ({ name, isThere, play }) => {
  const stand = useSpeakingGateway({ msPerChar: 60 });

  it.skipIf(!isThere).each(["ogg", "mp3", "wav"])(
    "joins live speech in its middle: audio.%s",
    async (container) => {
      const session = `players-${name}-${container}`;
      await using speaker = await TestClient.connect(stand.gateway, `/live/${session}?format=ulaw_8000`);
      speaker.send({ type: "speak", text: "alpha bravo charlie delta echo foxtrot golf. ".repeat(12) });
      await speaker.next("utterance.started");
      using folder = temporaryFolder();
      const file = folder.file("played.raw");
      chmodSync(dirname(file), 0o777);
      const player = play(`${stand.gateway.url}/live/${session}/audio.${container}`, file);
      try {
        await until("speech is played", () => loudSamples(file) > 8000, { deadlineMs: 60_000 });
      } finally {
        player.kill("SIGKILL");
        await once(player, "close");
      }
    },
  );
});
