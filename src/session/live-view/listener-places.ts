/** Where each listener of a session is, as operators see it. */
import type { AudioSent } from "../../metrics/audio-sent.ts";
import type { LiveListener } from "../../protocol/live-view.ts";
import { msOfTicks, TICKS_PER_MS } from "../../timing/ticks.ts";
import type { Moment, Participant } from "../connections/participant.ts";

export interface PlacesOptions {
  readonly moment: Moment;
  /** End of all audio that is rendered. */
  readonly writeTicks: number;
  /** What has been sent so far: how many bytes of a format last how long. */
  readonly audioSent: AudioSent;
  /** What stands for a queue of which only is known that it is too long, bytes. */
  readonly fullBytes: number;
}

/** Where a listener is, and what waits for it. */
export interface ListenerPlace {
  readonly ticks: number;
  readonly lagMs: number;
  readonly by: LiveListener["lag_by"];
  readonly queueBytes: number;
}

/** By its own word where it has said so lately, else by what its socket has taken. */
export function placeOf(participant: Participant, options: PlacesOptions): ListenerPlace {
  const { moment, writeTicks, fullBytes } = options;
  const waiting = participant.listener.bufferedBytes();
  const queueBytes = Number.isFinite(waiting) ? waiting : fullBytes;
  const ack = participant.acknowledged(moment);
  const ticks =
    ack === null
      ? Math.min(
          moment.playheadTicks,
          participant.sentTicks(writeTicks) - ticksOf(queueBytes, participant, options),
        )
      : Math.min(ack.ticks, writeTicks);
  const lagMs = Math.max(0, Math.round((moment.playheadTicks - ticks) / TICKS_PER_MS));
  return { ticks: Math.max(0, ticks), lagMs, by: ack === null ? "sent" : "ack", queueBytes };
}

/** How long the audio lasts that waits; events wait among it, and count as audio. */
function ticksOf(bytes: number, { subscription }: Participant, { audioSent }: PlacesOptions): number {
  const { rendition } = subscription.group;
  if (rendition === null || bytes === 0) return 0;
  const sent = audioSent.of(rendition.format);
  return sent.bytes === 0 ? 0 : ((bytes * sent.ms) / sent.bytes) * TICKS_PER_MS;
}

export function listenerOf(participant: Participant, options: PlacesOptions): LiveListener {
  const { id, listener, settings, subscription } = participant;
  const { ticks, lagMs, by, queueBytes } = placeOf(participant, options);
  const ackedMs = participant.lastAckMs;
  return {
    id,
    surface: listener.surface ?? "socket",
    role: settings.role,
    format: settings.format,
    policy: settings.policy,
    at_ms: msOfTicks(ticks),
    lag_ms: lagMs,
    lag_by: by,
    queue_bytes: queueBytes,
    dropped_frames: subscription.cursor.framesDropped,
    acknowledged_ms_ago: ackedMs === null ? null : Math.round(options.moment.nowMs - ackedMs),
    round_trip_ms: listener.roundTripMs ?? null,
  };
}
