/** What a caller's grants mean on the native socket: which settings it joins with, and which commands it may send. */
import { forbidden } from "../../access/access-error.ts";
import type { Caller } from "../../access/caller.ts";
import type { Action } from "../../access/grants.ts";
import { GatewayError } from "../../errors.ts";
import type {
  ConfigureCommand,
  DialogueCommand,
  PrepareCommand,
  QueueOptions,
  SpeakCommand,
  TextCommand,
} from "../../protocol/commands.ts";
import type { ListenerSettings } from "../../protocol/vocabulary.ts";
import type { SessionCommand } from "../../session/carry-out.ts";

/** One of these is needed to join at all. */
export const JOINING_ACTIONS: readonly Action[] = ["speak", "listen", "interrupt", "captions", "call"];

/** What a command needs; null: whoever has joined may send it. */
const NEEDED: Readonly<Record<SessionCommand["type"], Action | null>> = {
  speak: "speak",
  text: "speak",
  flush: "speak",
  end: "speak",
  dialogue: "speak",
  play: "speak",
  prepare: "speak",
  stop: "speak",
  resume: "speak",
  mark: "speak",
  interrupt: "interrupt",
  cancel: "interrupt",
  hangup: "call",
  played: null,
  configure: null,
  ping: null,
  close: null,
};

/** The events that say something of phone calls. */
const CALL_EVENTS: ReadonlySet<string> = new Set(["call", "dtmf"]);

/** The query that a caller joins with: its key's and token's settings win, and its role is one that it may have. */
export function queryOf(query: string, caller: Caller, sessionId: string): URLSearchParams {
  const asked = new URLSearchParams(query);
  if (caller.isAnybody) return asked;
  asked.delete("token");
  for (const [key, value] of Object.entries(caller.connectionSettings)) asked.set(key, String(value));
  if (!asked.has("role")) asked.set("role", roleOf(caller, sessionId));
  return asked;
}

function roleOf(caller: Caller, sessionId: string): ListenerSettings["role"] {
  if (!caller.may("speak", sessionId)) return "listener";
  return caller.may("listen", sessionId) ? "both" : "speaker";
}

/** Whether the caller may be in the session with these settings. Throws forbidden. */
export function checkSettings(caller: Caller, sessionId: string, settings: ListenerSettings): void {
  if (caller.isAnybody) return;
  const { role, format, events, caller: callerAudio } = settings;
  if (role !== "listener") caller.must("speak", sessionId);
  if (format !== "none") caller.must("listen", sessionId);
  else if (role !== "speaker") caller.mustAny(["listen", "captions"], sessionId);
  if (format !== "none") caller.mustHear(format);
  if (callerAudio !== undefined || events.some((kind) => CALL_EVENTS.has(kind))) {
    caller.must("call", sessionId);
  }
}

/** The command as it is carried out. `goesOn`: it adds to a text that has come in part. Throws forbidden. */
export function checkCommand(
  caller: Caller,
  sessionId: string,
  command: SessionCommand,
  { goesOn = false }: { readonly goesOn?: boolean } = {},
): SessionCommand {
  if (caller.isAnybody) return command;
  const needed = NEEDED[command.type];
  if (needed !== null) caller.must(needed, sessionId);
  if (command.type === "configure") return withoutPinned(command, caller);
  if (command.type === "play") {
    caller.mustUse({ voiceIds: [], modelId: undefined, priority: command.priority });
    if (command.replace !== undefined) caller.must("interrupt", sessionId);
    return command;
  }
  if (command.type === "prepare" && command.text === undefined) return command;
  if (
    command.type !== "speak" &&
    command.type !== "prepare" &&
    command.type !== "text" &&
    command.type !== "dialogue"
  )
    return command;
  if (command.vendor_options !== undefined && caller.limits("voices", "models")) {
    throw forbidden("Your token allows some voices or models only: vendor_options may name others");
  }
  const { voice_id: voiceId, ...shared } = caller.speechSettings;
  const said = withVoice({ ...command, ...shared }, voiceId);
  const queue: QueueOptions = said.type === "prepare" ? {} : said;
  caller.mustUse({ voiceIds: voicesOf(said), modelId: said.model_id, priority: queue.priority });
  if (!goesOn) mustName(said, caller);
  if (queue.replace !== undefined) caller.must("interrupt", sessionId);
  return said;
}

/** Which voice and model the upstream would take by itself is not known here. Throws forbidden. */
function mustName(command: Speech, caller: Caller): void {
  if (command.type !== "dialogue" && command.voice_id === undefined && caller.limits("voices")) {
    throw forbidden("Your token allows some voices only: name one as voice_id");
  }
  if (command.model_id === undefined && caller.limits("models")) {
    throw forbidden("Your token allows some models only: name one as model_id");
  }
}

type Speech = SpeakCommand | TextCommand | DialogueCommand | PrepareCommand;

function withVoice(command: Speech, voiceId: string | undefined): Speech {
  if (voiceId === undefined) return command;
  if (command.type !== "dialogue") return { ...command, voice_id: voiceId };
  return { ...command, inputs: command.inputs.map((input) => ({ ...input, voice_id: voiceId })) };
}

function voicesOf(command: Speech): string[] {
  if (command.type === "dialogue") return command.inputs.map(({ voice_id }) => voice_id);
  return command.voice_id === undefined ? [] : [command.voice_id];
}

function withoutPinned(command: ConfigureCommand, caller: Caller): ConfigureCommand {
  const pinned = Object.keys(caller.connectionSettings).filter((key) => Object.hasOwn(command, key));
  const [first] = pinned;
  if (first === undefined) return command;
  throw new GatewayError("forbidden", `Your token sets ${first}: it can't be changed`, { field: first });
}
