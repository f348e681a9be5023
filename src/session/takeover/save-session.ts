/** What a session would say, and what was heard of it: see saved-session.ts. */
import { msOfTicks, TICKS_PER_MS } from "../../timing/ticks.ts";
import type { Participant } from "../connections/participant.ts";
import type { Marks } from "../marks.ts";
import type { OutputRouter } from "../output/output-router.ts";
import type { PlaybackQueue } from "../playback/playback-queue.ts";
import type { Utterance } from "../playback/utterance.ts";
import { cutOf, heardSpokenEnd } from "../receipts.ts";
import type {
  HeardPlace,
  SavedConnection,
  SavedPlaces,
  SavedTexts,
  SavedUtterance,
} from "../saved-session.ts";

export interface SessionParts {
  readonly queue: PlaybackQueue;
  readonly output: OutputRouter;
  readonly marks: Marks;
  readonly playheadTicks: number;
}

/** Words that ended so long before what was sent are of no use to anybody who comes back. */
const REACH_TICKS = 1000 * TICKS_PER_MS;

export function saveTexts(parts: SessionParts): SavedTexts {
  const sentTicks = sentTicksOf(parts);
  return {
    sentMs: msOfTicks(sentTicks),
    utterances: parts.queue.unplayed
      .filter(({ hasFailed }) => !hasFailed)
      .flatMap((utterance) => saveUtterance(utterance, { ...parts, sentTicks })),
  };
}

/** Where the speech is that is being sent. */
export function savePlaces(parts: Omit<SessionParts, "marks">): SavedPlaces[] {
  const sentTicks = sentTicksOf(parts);
  return parts.queue.unplayed
    .filter(({ hasFailed, isSound, startTicks }) => !hasFailed && !isSound && startTicks !== null)
    .map((utterance) => placesOf(utterance, { ...parts, sentTicks }));
}

/** Who plays as it is sent has been sent no more than this, whatever others were sent in one go. */
export function sentTicksOf({
  output,
  playheadTicks,
}: Pick<SessionParts, "output" | "playheadTicks">): number {
  const { hasRealtime, minLeadMs, maxFrameMs } = output.demand;
  const { sentTicks } = output;
  // A frame that begins inside the lead is sent whole.
  return hasRealtime && Number.isFinite(minLeadMs)
    ? Math.min(sentTicks, playheadTicks + (minLeadMs + maxFrameMs) * TICKS_PER_MS)
    : sentTicks;
}

function saveUtterance(
  utterance: Utterance,
  { queue, marks, sentTicks }: SessionParts & { readonly sentTicks: number },
): SavedUtterance[] {
  const { template, resumption } = utterance;
  // A sound is larger than all that is told of a session: it is lost with its node.
  if (template.kind === "sound") return [];
  const saved = {
    ...placesOf(utterance, { queue, sentTicks }),
    command: commandOf(template),
    text: utterance.text,
    half: utterance.input.half,
    isEnded: utterance.input.isEnded,
    subject: utterance.subject ?? null,
    holder: utterance.holder,
    heardMs: msOfTicks(resumption?.heardTicks ?? 0),
    marks: marks.waitingOn(utterance),
  };
  return [saved];
}

function placesOf(
  utterance: Utterance,
  { queue, sentTicks }: Pick<SessionParts, "queue"> & { readonly sentTicks: number },
): SavedPlaces {
  const { id, startTicks } = utterance;
  return {
    id,
    startMs: startTicks === null ? null : msOfTicks(startTicks),
    heard: heardPlaces(utterance, { coming: queue.comingOf(utterance), sentTicks }),
  };
}

function commandOf(
  template: Exclude<Utterance["template"], { readonly kind: "sound" }>,
): SavedUtterance["command"] {
  switch (template.kind) {
    case "text":
      return { ...template.options, type: "speak", text: "" };
    case "tokens":
      return { ...template.options, type: "text", text: "" };
    case "dialogue":
      return template.command;
  }
}

/** How much of the text is heard when how much of the audio is: at the end of each word that is being sent. */
function heardPlaces(
  utterance: Utterance,
  {
    coming,
    sentTicks,
  }: { readonly coming: ReturnType<PlaybackQueue["comingOf"]>; readonly sentTicks: number },
): HeardPlace[] {
  const { spoken, startTicks, endTicks, transcript, resumption } = utterance;
  const places: HeardPlace[] = [{ end: spoken.clientHeardEnd(resumption?.spokenStart ?? 0), ms: 0 }];
  if (startTicks === null) return places;
  const cut = cutOf(utterance, coming);
  const add = (ticks: number): void => {
    const end = cut.clientEnd(heardSpokenEnd(cut, ticks));
    const last = places.at(-1);
    if (last === undefined || end > last.end) places.push({ end, ms: msOfTicks(ticks) });
  };
  const { words } = transcript;
  const first = words.findIndex((word) => word.endTicks > sentTicks - REACH_TICKS);
  if (first > 0) add(words[first - 1]?.endTicks ?? startTicks);
  if (words.length === 0 || first < 0) add(sentTicks);
  else for (const { endTicks: ticks } of words.slice(first)) add(ticks);
  if (utterance.state.kind === "played" && endTicks !== null) {
    places.push({ end: utterance.text.length, ms: msOfTicks(endTicks) });
  }
  return places;
}

export function saveConnection({
  id,
  resumeToken,
  holder,
  openIds,
  currentId,
}: Participant): SavedConnection {
  return { token: resumeToken, listenerId: id, holder, openIds: [...openIds], currentId };
}
