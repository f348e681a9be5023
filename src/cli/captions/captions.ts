/** `voicewire captions`: follows a session and puts its captions into files, OBS, Zoom and YouTube. */
import type { CommandModule } from "../help.ts";
import type { Io } from "../io.ts";
import { Ending, joinToFollow, untilEnd } from "../session/follow.ts";
import { CaptionsFeed } from "./captions-feed.ts";
import { ObsTarget } from "./captions-obs.ts";
import { CAPTIONS_FLAGS, type CaptionsPlan, planCaptions } from "./captions-plan.ts";
import { CaptionQueue } from "./captions-queue.ts";
import type { CaptionTarget } from "./captions-target.ts";
import { YoutubeTarget } from "./captions-youtube.ts";
import { ZoomTarget } from "./captions-zoom.ts";

export const captions: CommandModule = {
  help: {
    name: "captions",
    usage: ["captions [FLAGS] SESSION"],
    about:
      "Follows a session and puts its captions where they are wanted, each at its time, until Ctrl+C, --for or the " +
      "gateway's end. A service that fails is tried again and never holds up the others. Addresses with a signature " +
      "are better given by the environment: other users of the machine can read a command line.",
    flags: CAPTIONS_FLAGS,
    examples: [
      { line: "voicewire captions demo --vtt demo.vtt --srt demo.srt", about: "files" },
      { line: "voicewire captions demo --obs ws://127.0.0.1:4455", about: "CEA-608 in the stream of OBS" },
      { line: "voicewire captions demo --mode roll-up --vtt -", about: "line by line on stdout" },
    ],
  },
  run: runCaptions,
};

async function runCaptions(io: Io, args: readonly string[]): Promise<number> {
  const plan = planCaptions(io, args);
  const warn = (line: string): void => io.stderr.write(`voicewire: ${line}\n`);
  const { clock } = io;
  const queues = targetsOf(plan).map(
    (target) => new CaptionQueue({ target, clock, warn, random: Math.random }),
  );
  const { vtt, srt } = plan;
  const feed = new CaptionsFeed({ clock, wallMs: Date.now, queues, vtt, srt, stdout: io.stdout });
  const end = new Ending(io, plan.forMs);
  try {
    const connection = await joinToFollow(plan, {
      clock,
      end,
      settings: { format: "none", events: ["cues"], cue_profile: plan.profile, cue_mode: plan.mode },
      mayReconnect: true,
    });
    if (connection === undefined) return end.code;
    feed.start(connection);
    connection.on("reconnecting", ({ attempt }) => {
      if (attempt === 1) warn("the connection broke, joining again");
    });
    try {
      return await untilEnd(connection, end);
    } finally {
      await connection.close();
    }
  } finally {
    end.close();
    feed.close();
    await Promise.all(queues.map((queue) => queue.close()));
  }
}

function targetsOf({ obs, zoom, youtube, mode }: CaptionsPlan): CaptionTarget[] {
  return [
    ...(obs === undefined ? [] : [new ObsTarget(obs.address, obs.password)]),
    ...(zoom === undefined ? [] : [new ZoomTarget(zoom.address, { language: zoom.language, mode })]),
    ...(youtube === undefined ? [] : [new YoutubeTarget(youtube, { nowMs: Date.now, mode })]),
  ];
}
