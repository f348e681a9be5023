/** Asterisk's events in both of their shapes: `NAME key:value key:value` and `{"event":"NAME","key":value}`. */
import { checkLength, protocolError, readFields } from "./fields.ts";

/** Fields of one event, at most. */
const MAX_FIELDS = 32;

export interface AsteriskEvent {
  readonly name: string;
  readonly isJson: boolean;
  /** The id that came with the mark; empty where none did. */
  readonly correlationId: string;
  /** The channel's variables (JSON only). */
  readonly variables: Readonly<Record<string, string>>;
  /** A string or number of the event. */
  field(name: string): string | undefined;
}

/** Throws `carrier_protocol` for JSON that is no event and for text that begins with no name. */
export function readAsteriskEvent(text: string): AsteriskEvent {
  checkLength("asterisk", text);
  return text.startsWith("{") ? readJson(text) : readPlain(text);
}

function readJson(text: string): AsteriskEvent {
  const fields = readFields("asterisk", text);
  const values = new Map(Object.entries(fields.parameters()));
  return {
    name: fields.text("event"),
    isJson: true,
    correlationId: fields.optionalText("correlation_id") ?? "",
    variables: fields.optionalObject("channel_variables")?.parameters() ?? {},
    field: (name) => values.get(name),
  };
}

function readPlain(text: string): AsteriskEvent {
  const [name = "", ...words] = text.split(" ", MAX_FIELDS);
  if (!/^[A-Z][A-Z_]{0,63}$/.test(name)) throw protocolError("asterisk", "a text message is no event");
  const values = new Map(
    words.flatMap((word) => {
      const at = word.indexOf(":");
      return at > 0 ? [[word.slice(0, at), word.slice(at + 1)] as const] : [];
    }),
  );
  return {
    name,
    isJson: false,
    correlationId: words[0] ?? "",
    variables: {},
    field: (field) => values.get(field),
  };
}
