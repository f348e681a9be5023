/** The events that webhooks get: the kinds that are subscribed to, and the types that payloads of each kind have. */

interface EventKind {
  /** The `type` of payloads, another vocabulary than the kinds'. The first is what a trigger sends unless told otherwise. */
  readonly types: readonly [string, ...string[]];
  /** The product that a subscription stands for, in the words of `usage_type`. */
  readonly usage: string;
}

/** The type of agent_qa is nowhere documented: it is called what the kind is called. */
const KINDS = {
  voice_library_removal_notice: {
    types: ["voice_removal_notice", "voice_removal_notice_withdrawn", "voice_removed"],
    usage: "Voice Library Removal Notices",
  },
  speech_to_text: { types: ["speech_to_text_transcription"], usage: "Speech to Text" },
  agent_qa: { types: ["agent_qa"], usage: "Agent QA Evaluations" },
  flows: { types: ["flows_generation", "flows_template_run"], usage: "Flows" },
} as const satisfies Record<string, EventKind>;

/** What a webhook subscribes to. */
export type EventName = keyof typeof KINDS;
/** What a payload of that kind calls itself. */
export type EventType<Name extends EventName = EventName> = (typeof KINDS)[Name]["types"][number];
export type EventData = Readonly<Record<string, unknown>>;

export const EVENT_NAMES = Object.keys(KINDS) as readonly EventName[];

/** Undefined where there is no such kind. */
export function findEventName(text: unknown): EventName | undefined {
  return EVENT_NAMES.find((name) => name === text);
}

/** The first is the usual one. */
export function typesOf(name: EventName): readonly [EventType, ...EventType[]] {
  return KINDS[name].types;
}

/** The product that is configured to use a webhook with this subscription. */
export function usageOf(name: EventName): string {
  return KINDS[name].usage;
}

/** The body of a delivery; `timeMs` counts from 1970. */
export function envelopeOf(type: EventType, data: EventData, timeMs: number): string {
  return JSON.stringify({ type, event_timestamp: Math.floor(timeMs / 1000), data });
}

/** Data as a payload of that type has it, for an operator's trigger; `id` distinguishes one from another. */
export function sampleDataOf(type: EventType, id: string): EventData {
  return SAMPLES[type](id);
}

const SAMPLES: Readonly<Record<EventType, (id: string) => EventData>> = {
  voice_removal_notice: (id) => ({
    voice_id: id,
    voice_name: "Sample voice",
    removal_date_unix: 1_798_761_600,
  }),
  voice_removal_notice_withdrawn: (id) => ({ voice_id: id, voice_name: "Sample voice" }),
  voice_removed: (id) => ({ voice_id: id, voice_name: "Sample voice" }),
  speech_to_text_transcription: (id) => ({
    request_id: id,
    transcription: {
      language_code: "en",
      language_probability: 0.98,
      text: "Hello world!",
      words: [
        { text: "Hello", start: 0, end: 0.5, type: "word", speaker_id: "speaker_1", logprob: -0.01 },
        { text: " ", start: 0.5, end: 0.5, type: "spacing", speaker_id: "speaker_1", logprob: 0 },
        { text: "world!", start: 0.5, end: 1.2, type: "word", speaker_id: "speaker_1", logprob: -0.02 },
      ],
    },
  }),
  agent_qa: (id) => ({
    evaluation_id: id,
    agent_id: "agent_sample",
    status: "done",
    summary: "Every check passed.",
  }),
  flows_generation: (id) => ({
    id,
    status: "completed",
    content_url: "https://example.com/generation.mp3",
    content_mime_type: "audio/mpeg",
  }),
  flows_template_run: (id) => ({
    id,
    template_id: "template_sample",
    version_id: "version_sample",
    status: "completed",
    outputs: {},
  }),
};
