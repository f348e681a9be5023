/** `voicewire listen`: follows a session; audio to a file or stdout, captions to the terminal or to files. */
import type { CommandModule } from "../help.ts";
import type { Io } from "../io.ts";
import { prepareOutputs } from "../output/outputs.ts";
import { Ending, joinToFollow, untilEnd } from "../session/follow.ts";
import { captionEvents, JSON_EVENTS } from "../session/join-session.ts";
import { Following } from "./following.ts";
import { LISTEN_FLAGS, planListen } from "./listen-plan.ts";

export const listen: CommandModule = {
  help: {
    name: "listen",
    usage: ["listen [FLAGS] SESSION"],
    about:
      "Follows a session from now on, until Ctrl+C, --for, or the gateway's end. Others do not notice. When the " +
      "connection breaks it comes back by itself and goes on where it was; what is gone by then is said.",
    flags: LISTEN_FLAGS,
    examples: [
      { line: "voicewire listen demo", about: "captions, with the current word lit up" },
      {
        line: "voicewire listen demo --wait --format pcm_24000 --out - | ffplay -f s16le -ar 24000 -ch_layout mono -",
        about: "hear it, with captions",
      },
      { line: "voicewire listen demo --out demo.ogg --vtt demo.vtt --for 60", about: "record a minute" },
      {
        line: "voicewire listen demo --json --wait | jq .type",
        about: "every event, as soon as there is one",
      },
      {
        line: "voicewire listen demo --policy lossless --out demo.wav",
        about: "a recording without gaps; a disk that does not keep up slows the session down",
      },
    ],
  },
  run: runListen,
};

async function runListen(io: Io, args: readonly string[]): Promise<number> {
  const plan = planListen(io, args);
  const end = new Ending(io, plan.forMs);
  try {
    const openOutputs = await prepareOutputs(io, { ...plan, isQuiet: false, player: undefined });
    const connection = await joinToFollow(plan, {
      clock: io.clock,
      end,
      settings: {
        format: plan.format,
        frame_ms: plan.frameMs,
        policy: plan.policy,
        events: plan.isJson ? JSON_EVENTS : ["characters", "words", "segments", ...captionEvents(plan)],
      },
      resume: plan.resume,
      mayReconnect: plan.mayReconnect,
    });
    if (connection === undefined) return end.code;
    try {
      const outputs = openOutputs();
      const following = new Following({ io, plan, connection, outputs });
      try {
        following.start();
        return await Promise.race([untilEnd(connection, end), outputs.failed]);
      } finally {
        following.stop();
        await outputs.close();
      }
    } finally {
      await connection.close();
    }
  } finally {
    end.close();
  }
}
