/** The commands `prepare`, and `play` of what was prepared. */

import { bytesPerMs } from "../../audio/formats.ts";
import { type GatewayError, toGatewayError } from "../../errors.ts";
import type { PrepareCommand, SpeakCommand } from "../../protocol/commands.ts";
import { errorBody } from "../../protocol/events.ts";
import type { Participant } from "../connections/participant.ts";
import type { Payer } from "../payer.ts";
import { Utterance } from "../playback/utterance.ts";
import type { Session } from "../session.ts";
import { soundOf } from "../sound.ts";
import { PreparedSpeech } from "./prepared-speech.ts";

/** Who asks. */
interface Asking extends Payer {
  readonly session: Session;
  readonly participant: Participant;
}

/** Answers with `prepared`, or `error`, now or later. Throws what refuses it at once. */
export function prepareSound({ session, participant }: Asking, command: PrepareCommand): void {
  const sound = soundOf({ audio: command.audio ?? "", ...(command.format && { format: command.format }) });
  const id = session.prepared.begin(command.prepared_id, "sound");
  try {
    session.prepared.grow(id, sound.audio.length);
  } catch (thrown) {
    session.prepared.drop(id);
    throw thrown;
  }
  session.prepared.keep(id, { sound });
  const ms = sound.audio.length / bytesPerMs(sound.format);
  report({ session, participant }, { id, characters: 0, ms });
}

/** `command`: what is said. As `prepareSound`. */
export function prepareSpeech(from: Asking, preparedId: string | undefined, command: SpeakCommand): void {
  const { session, participant, budget, subject } = from;
  const { prepared } = session;
  const id = prepared.begin(preparedId, "speech");
  try {
    const charged = budget?.begin(command.text.length);
    session.deps.counters.characters.requested += command.text.length;
    const { textDefaults, model } = session.settings;
    const utterance = Utterance.ofText(
      { id, session, acceptedMs: session.nowMs(), textDefaults, defaultModel: model, subject },
      command,
    );
    const speech = new PreparedSpeech({
      deps: session.deps,
      utterance,
      needs: session.renditionsInUse(),
      onBytes: (bytes) => prepared.grow(id, bytes),
      onDone: (audio) => {
        charged?.end();
        prepared.stopBy(id, () => undefined);
        prepared.keep(id, { command: { ...command, voice_id: audio.voiceId }, audio });
        report(from, { id, characters: command.text.length, ms: audio.ms });
      },
      onFailed: (error) => {
        prepared.drop(id);
        fail(error);
      },
    });
    prepared.stopBy(id, () => {
      charged?.end();
      speech.close();
    });
  } catch (thrown) {
    prepared.drop(id);
    throw toGatewayError(thrown);
  }

  function fail(error: GatewayError): void {
    participant.send((base) => ({ type: "error", ...base, ...errorBody(error), prepared_id: id }));
  }
}

function report(
  { session, participant }: Pick<Asking, "session" | "participant">,
  { id, characters, ms }: { readonly id: string; readonly characters: number; readonly ms: number },
): void {
  participant.send((base) => ({
    type: "prepared",
    ...base,
    prepared_id: id,
    characters,
    ms,
    expires_in_ms: session.settings.preparedMs,
  }));
}
