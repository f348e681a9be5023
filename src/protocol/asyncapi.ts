/** The AsyncAPI 3.0 document of the native socket, made from the schemas that check its messages. */
import { z } from "zod";
import { COMMANDS } from "./commands.ts";
import { EVENTS } from "./events.ts";
import {
  BANDS,
  CALLER_FORMATS,
  CUE_MODES,
  CUE_PROFILES,
  EVENT_KINDS,
  FRAMINGS,
  LISTENER_FORMATS,
  OFFSET_UNITS,
  PACES,
  POLICIES,
  ROLES,
} from "./vocabulary.ts";

/** What a client may write into the query of the URL; session/listener-settings.ts reads it. */
const QUERY = {
  role: z.enum(ROLES).default("both"),
  format: z.enum(LISTENER_FORMATS).default("pcm_24000"),
  frame_ms: z.number().int().min(10).max(100).multipleOf(10).default(20),
  framing: z.enum(FRAMINGS).default("raw"),
  band: z.enum(BANDS).default("full"),
  pace: z.enum(PACES).default("realtime"),
  lead_ms: z.number().min(0).max(10_000).default(300),
  policy: z.enum(POLICIES).default("live"),
  events: z.string().describe(`Names with commas between them, or none: ${EVENT_KINDS.join(", ")}`),
  offsets: z.enum(OFFSET_UNITS).default("utf16"),
  cue_profile: z.enum(CUE_PROFILES).default("web"),
  cue_mode: z.enum(CUE_MODES).default("pop-on"),
  caller: z.enum(CALLER_FORMATS).describe("With role=speaker: binary messages carry the caller's voice"),
  wait: z.boolean().default(false),
  resume: z.string().describe("After a broken connection: the resume_token of hello"),
  seq: z.number().int().min(0).describe("With resume: the last event that came"),
  at_ms: z.number().min(0).describe("With resume: the end of the audio that came"),
};

/** The document as a JSON value. */
export function asyncApi(version: string): Record<string, unknown> {
  const commands = Object.entries(COMMANDS).map(([type, schema]) => messageOf(type, schema));
  const events = Object.entries(EVENTS).map(([type, schema]) => messageOf(type, schema));
  const audio = {
    name: "audio",
    title: "audio",
    summary: "One exact frame of audio per binary message, as hello.audio describes it",
    contentType: "application/octet-stream",
    payload: { type: "string", format: "binary" },
  };
  return {
    asyncapi: "3.0.0",
    info: {
      title: "voicewire: the native protocol",
      version,
      description: "Text in, audio frames and timed events out. docs/protocol.md explains every message.",
      license: { name: "Apache-2.0" },
    },
    servers: { local: { host: "127.0.0.1:8080", protocol: "ws" } },
    channels: {
      session: {
        address: "/live/{session}",
        title: "A session",
        parameters: {
          session: { description: "1 to 64 letters, digits, dots, dashes, underscores" },
        },
        bindings: {
          ws: { method: "GET", query: jsonSchema(z.object(QUERY).partial()), bindingVersion: "0.1.0" },
        },
        messages: {
          ...keyed("command", commands),
          ...keyed("event", events),
          audio: { $ref: "#/components/messages/audio" },
        },
      },
    },
    operations: {
      sendCommands: operation("receive", "What a client sends", referencesTo("command", commands)),
      receiveEvents: operation("send", "What a client gets", [
        ...referencesTo("event", events),
        { $ref: "#/channels/session/messages/audio" },
      ]),
    },
    components: {
      messages: { ...named("command", commands), ...named("event", events), audio },
    },
  };
}

interface Message {
  readonly name: string;
  readonly title: string;
  readonly summary?: string;
  readonly contentType: string;
  readonly payload: unknown;
}

function messageOf(type: string, schema: z.ZodType): Message {
  const { title: _title, description, ...payload } = jsonSchema(schema);
  return {
    name: type,
    title: type,
    ...(typeof description === "string" ? { summary: description } : {}),
    contentType: "application/json",
    payload,
  };
}

/** Without what only a program needs to know: the dialect's name, and that nobody changes what was emitted. */
function jsonSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: "input",
    override: ({ jsonSchema: part }) => {
      delete part.readOnly;
    },
  });
  return rest;
}

/** Keys of AsyncAPI hold letters, digits, dots, dashes and underscores; a command and an event may share a name. */
const keyOf = (side: string, { name }: Message): string => `${side}.${name}`;

function keyed(side: string, messages: readonly Message[]): Record<string, unknown> {
  return Object.fromEntries(
    messages.map((message) => [
      keyOf(side, message),
      { $ref: `#/components/messages/${keyOf(side, message)}` },
    ]),
  );
}

function named(side: string, messages: readonly Message[]): Record<string, Message> {
  return Object.fromEntries(messages.map((message) => [keyOf(side, message), message]));
}

function referencesTo(side: string, messages: readonly Message[]): unknown[] {
  return messages.map((message) => ({ $ref: `#/channels/session/messages/${keyOf(side, message)}` }));
}

function operation(action: "send" | "receive", summary: string, messages: readonly unknown[]): unknown {
  return { action, summary, channel: { $ref: "#/channels/session" }, messages };
}
