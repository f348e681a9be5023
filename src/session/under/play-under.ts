/** The command `play` with `under`: a sound under speech, from what the client sent, had made, or had prepared. */
import { GatewayError } from "../../errors.ts";
import type { PlayCommand } from "../../protocol/commands.ts";
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { Session } from "../session.ts";
import { generatedOf, roomFor, soundOf } from "../sound.ts";
import { madeSamples, type SoundSamples, StoredSamples } from "./sound-samples.ts";
import type { UnderOptions } from "./under-sound.ts";

/** So much softer it is while something is spoken, dB. */
const DUCK_DB = 12;
const FADE_MS = 20;

/** Its id. Throws sounds_full, not_prepared, invalid_field, utterance_id_taken, draining. */
export function playUnder(session: Session, command: PlayCommand): string {
  session.under.mustHaveRoom();
  if (command.utterance_id !== undefined) session.utteranceCommands.mustBeFree(command.utterance_id);
  const { samples, onOver } = samplesOf(session, command);
  try {
    const id = session.utteranceCommands.takeId(command.utterance_id);
    session.under.add(id, { ...optionsOf(command), samples, onOver });
    return id;
  } catch (thrown) {
    onOver();
    throw thrown;
  }
}

function optionsOf(command: PlayCommand): Omit<UnderOptions, "samples" | "onOver"> {
  const {
    gain_db = 0,
    duck_db = DUCK_DB,
    fade_in_ms = FADE_MS,
    fade_out_ms = FADE_MS,
    loop = false,
  } = command;
  return {
    gain: 10 ** (gain_db / 20),
    duckedGain: 10 ** ((gain_db - duck_db) / 20),
    fadeInTicks: fade_in_ms * TICKS_PER_MS,
    fadeOutTicks: fade_out_ms * TICKS_PER_MS,
    repeats: loop === "speech" ? "speech" : loop ? "always" : "once",
  };
}

function samplesOf(
  session: Session,
  command: PlayCommand,
): { readonly samples: SoundSamples; readonly onOver: () => void } {
  const { prepared_id, sound, audio = "", format } = command;
  if (sound !== undefined) {
    const made = generatedOf(sound);
    return { samples: madeSamples(made.sound, made.ms * TICKS_PER_MS), onOver: () => undefined };
  }
  const repeats = command.loop !== undefined && command.loop !== false;
  if (prepared_id === undefined) {
    const sent = soundOf({ audio, ...(format && { format }) });
    const release = roomFor(sent.audio.length, session.deps.sounds);
    return { samples: new StoredSamples(sent, repeats), onOver: release };
  }
  const { what, done } = session.prepared.use(prepared_id);
  if ("sound" in what) return { samples: new StoredSamples(what.sound, repeats), onOver: done };
  done();
  throw new GatewayError(
    "invalid_field",
    `Field prepared_id of play names speech: ${prepared_id}, expected a sound to be played under speech`,
    { field: "prepared_id" },
  );
}
