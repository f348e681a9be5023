/** The gateway's error codes as a person wants to read them: what happened, and what to do. */
import type { ErrorBody, WarningEvent } from "../../protocol/events.ts";

export interface PlainError {
  readonly what: string;
  readonly advice: string;
}

function say(what: string, advice: string): PlainError {
  return { what, advice };
}

const TRY_AGAIN = "Wait a moment, then press Speak again.";
const SHORTEN = "Shorten the text, or split it and speak the parts one after the other.";
const PAGE_FAULT =
  "Reload the page. If it happens again, the page and the gateway may be of different versions.";

const PASTE =
  "Ask for a new one and paste it here. It stays in this tab, and is gone when you close or reload it.";

const BY_CODE: Readonly<Record<string, PlainError>> = {
  text_too_long: say("This text is too long for one go.", SHORTEN),
  message_too_large: say("This text is too long for one go.", SHORTEN),
  invalid_text: say(
    "The text holds characters that can't be spoken.",
    "Remove pasted control characters and try again.",
  ),
  queue_full: say(
    "Too many texts are waiting to be spoken.",
    "Let some of them finish, or press Stop to clear the queue.",
  ),
  not_prepared: say("What was to be played is not there any more.", "Prepare it again."),
  sounds_full: say("The gateway keeps as many sounds as it may.", TRY_AGAIN),
  session_limit: say("The gateway is full.", "Try again in a minute, or raise max-sessions on the gateway."),
  listener_limit: say(
    "This session has as many listeners as it may.",
    "Try again later, or raise max-listeners.",
  ),
  host_not_allowed: say(
    "The gateway does not know itself by this name.",
    "Open this page at localhost, or start the gateway with --allowed-hosts and the name.",
  ),
  origin_not_allowed: say(
    "The gateway does not take this page.",
    "Start the gateway with --allow-origin and the address of this page.",
  ),
  unauthorized: say("The gateway does not take this token.", PASTE),
  token_expired: say("Your token has expired or was used before.", PASTE),
  token_revoked: say("Your token was withdrawn.", PASTE),
  rate_limited: say("More comes from here than the gateway takes.", TRY_AGAIN),
  connection_limit: say(
    "Your token has as many connections as it may.",
    "Close another tab of this page, then try again.",
  ),
  forbidden: say(
    "Your token does not allow this.",
    "Open the address that came with it, or ask for a token that allows more.",
  ),
  budget_exhausted: say("Your token has no characters left.", "Ask for a new one."),
  not_a_speaker: say("This tab only listens.", "Open the session without role=listener to speak in it."),
  too_many_refusals: say(
    "This tab sent far more than the gateway takes.",
    "Wait a moment, then try again with less at once.",
  ),
  inbox_full: say(
    "This tab sent more at once than the gateway keeps.",
    "Wait a moment, then try again with less at once.",
  ),
  slow_consumer: say(
    "This connection is too slow to keep up.",
    "It joins again by itself; a better network helps.",
  ),
  text_missing: say(
    "Some of that text did not reach the gateway.",
    "Press Speak to hear it from the beginning.",
  ),
  utterance_over: say("That speech is over already.", "Press Speak to hear it again."),
  resume_expired: say(
    "It is too late to go on: the rest of that speech is not kept any more.",
    "Press Speak to hear it from the beginning.",
  ),
  unknown_voice: say(
    "The chosen voice does not exist any more.",
    "Choose another voice and press Speak again.",
  ),
  upstream_unreachable: say(
    "The gateway can't reach its speech service.",
    "Check that the service runs and upstream-url is right (voicewire doctor says), then try again.",
  ),
  upstream_timeout: say("The speech service did not answer in time.", TRY_AGAIN),
  upstream_unauthorized: say(
    "The speech service refused the gateway's key.",
    "Set a valid upstream-key on the gateway and start it again.",
  ),
  upstream_forbidden: say(
    "The speech service does not allow this with the gateway's plan.",
    "Try another voice or model.",
  ),
  upstream_not_found: say("The speech service does not know this voice or model.", "Choose another one."),
  upstream_invalid: say(
    "The speech service did not accept this request.",
    "Try another model, language or speed.",
  ),
  upstream_rate_limited: say("The speech service is at its limit of requests.", TRY_AGAIN),
  upstream_busy: say("The gateway is waiting for the speech service already.", TRY_AGAIN),
  upstream_failed: say("The speech service failed.", TRY_AGAIN),
  upstream_protocol: say("The speech service sent something that makes no sense.", TRY_AGAIN),
  upstream_truncated: say("The speech broke off before its end.", TRY_AGAIN),
  upstream_not_speech: say(
    "The speech service answers with something that is no speech.",
    "Try another voice, or tell whoever runs the gateway.",
  ),
  upstream_audio_rate: say(
    "The speech service's sound is too fast or too slow: its sample rate is not the one that it says.",
    "Try another voice, or tell whoever runs the gateway.",
  ),
  bus_lost: say("The machine that has this session can't be reached.", "This page joins again by itself."),
  bus_no_answer: say(
    "The machine that has this session does not answer.",
    "This page joins again by itself.",
  ),
  bus_timeout: say("The machine that has this session did not answer in time.", TRY_AGAIN),
  bus_full: say("The gateway's machines have too much to say to one another.", "Try again in a moment."),
  node_version: say("The machine that has this session is being updated.", "Try again in a minute."),
  bus_too_large: say("That is more than the gateway's machines take at once.", "Send less at once."),
  connection_age: say("The connection was open for as long as one may be.", "It connects again by itself."),
  memory_limit: say("The gateway has too much to do.", "Try again in a moment."),
  upload_limit: say("Too many files are being sent from this address.", "Wait until one is there."),
  encoder_failed: say("The gateway could not encode the sound.", TRY_AGAIN),
  draining: say("The gateway is shutting down.", "This page joins again when it is back."),
  session_closed: say("The session was closed.", "Reload the page to open it again."),
  internal: say("Something went wrong inside the gateway.", "Try again; its log says more."),
  voice_package_missing: say(
    "The built-in voice is not installed.",
    "Run npm install without --omit=optional on the gateway, or set upstream-url.",
  ),
  voice_engine_missing: say(
    "The gateway can't speak with voice models.",
    "Run npm install sherpa-onnx-node on the gateway, or leave voice-models out.",
  ),
  voice_model_incomplete: say("A voice model is not complete.", "Unpack its whole archive into its folder."),
  recording_unreadable: say(
    "This file is no recording, or it was edited.",
    "Take a file as the gateway wrote it, from the folder of --record.",
  ),
  recording_version: say(
    "This recording is of another version.",
    "Open it with the version of voicewire that wrote it.",
  ),
  voice_model_broken: say(
    "A voice model can't be loaded.",
    "Unpack its archive again, or take another voice.",
  ),
};

/** Codes that mean the page itself sent something wrong. */
const PAGE_FAULTS: ReadonlySet<string> = new Set([
  "malformed_json",
  "unknown_type",
  "invalid_field",
  "invalid_path",
  "binary_not_allowed",
  "unknown_format",
  "unknown_event",
]);

/** What a person pressed too late for is over already. */
const NO_NEWS: ReadonlySet<string> = new Set([
  "nothing_to_interrupt",
  "nothing_to_cancel",
  "nothing_to_resume",
  "unknown_utterance",
]);

/** null where there is nothing to say: stopping when nothing speaks is no mistake of a person's. */
export function inPlainWords(
  error: Pick<ErrorBody, "code" | "message"> & { readonly field?: string | undefined },
): PlainError | null {
  if (NO_NEWS.has(error.code)) return null;
  const known = BY_CODE[error.code];
  if (known !== undefined) return known;
  if (PAGE_FAULTS.has(error.code)) {
    return say(
      `The gateway did not accept ${error.field ?? "what this page sent"} (${error.code}).`,
      PAGE_FAULT,
    );
  }
  return say(`${error.message} (${error.code})`, TRY_AGAIN);
}

const WARNINGS: Readonly<Record<string, PlainError>> = {
  resume_refused: say(
    "The connection is back, but what was being said did not go on.",
    "What is struck out was not heard here: speak it again to hear it.",
  ),
  nobody_listens: say("Nobody listens to this session yet.", "What is said waits until somebody does."),
  settings_ignored: say(
    "This voice has nothing for some of its settings.",
    "It speaks without them: another voice may have them.",
  ),
  half_character: say("The text had half a character, which is left out.", "Write that character again."),
  unbalanced_markup: say(
    "The text has a tag or a bracket without its other half.",
    "It is spoken unchanged: mend the text if it was meant as one.",
  ),
};

const WANTED = say(
  "This gateway asks for a token.",
  "Paste the one that you were given. It stays in this tab, and is gone when you close or reload it.",
);
/** A new token helps against them. */
const TOKEN_CODES: ReadonlySet<string> = new Set(["unauthorized", "token_expired", "token_revoked"]);

/** Why a token is wanted; null where none would help. `hasToken`: one was shown. */
export function tokenInPlainWords(code: string, hasToken: boolean): PlainError | null {
  if (code === "unauthorized" && !hasToken) return WANTED;
  if (code === "token_failed") return say("This is no token.", "Paste all of it, and nothing else.");
  if (code === "forbidden") {
    const advice = "Open the address that came with it, or paste another one.";
    return say("Your token does not allow this session.", advice);
  }
  return TOKEN_CODES.has(code) ? (BY_CODE[code] ?? null) : null;
}

/** The gateway warns early: there is time to ask for another one. */
export function expiringInPlainWords(leftMs: number): PlainError {
  const seconds = Math.round(leftMs / 1000);
  return say(
    `Your token ends in ${seconds} s.`,
    "Paste a new one to stay. What is being said is said to its end.",
  );
}

/** What is mended already, and heard as one speech. */
const MENDED: ReadonlySet<string> = new Set(["speech_recovered"]);

/** A warning, which stops nothing; null where nobody has to know. */
export function warningInPlainWords({
  code,
  message,
}: Pick<WarningEvent, "code" | "message">): PlainError | null {
  if (MENDED.has(code)) return null;
  return WARNINGS[code] ?? say(message, "");
}

/** While it tries again; null where there is nothing wrong: a listener may be there before the speaker. */
export function waitingInPlainWords(waiting: {
  readonly attempt: number;
  readonly delayMs: number;
  readonly error: { readonly code: string; readonly message: string } | null;
}): PlainError | null {
  if (waiting.error?.code === "unknown_session") return null;
  const what = waiting.error === null ? "The gateway does not answer." : inPlainWords(waiting.error)?.what;
  const advice = `Trying again in ${(waiting.delayMs / 1000).toFixed(1)} s (attempt ${waiting.attempt}).`;
  return { what: what ?? "The gateway does not let this page in.", advice };
}
