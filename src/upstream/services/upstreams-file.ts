/**
 * The file of `upstreams`: other speech services beside the first upstream, as one JSON list; or an object with this list as
 * `upstreams` and voices of one's own as `voices`.
 */
import { GatewayError } from "../../errors.ts";
import { jsonFault } from "../../kit/json-fault.ts";
import { isOwnVoiceName, isUpstreamName, splitUpstreamVoice } from "../../protocol/upstream-voice.ts";
import { checkedKey, parseBaseUrl, SCHEMES, type Scheme } from "../transport/base-url.ts";
import type { VoiceConfig } from "../voices/voice-config.ts";
import { isObject, type JsonObject } from "./json-values.ts";
import { isListedVoice, type ServiceConfig } from "./service-config.ts";
import { SERVICES, type Service } from "./services.ts";

/** Where keys are. */
export interface Secrets {
  /** A variable of the environment; undefined or "": not set. */
  env(name: string): string | undefined;
  /** A file's text. Throws what is wrong. */
  file(path: string): string;
}

export interface UpstreamsFile {
  readonly services: readonly ServiceConfig[];
  readonly voices: readonly VoiceConfig[];
}

const FIELDS = [
  "name",
  "service",
  "url",
  "key-env",
  "key-file",
  "model",
  "sample-rate",
  "voices",
  "max-open",
] as const;
type Field = (typeof FIELDS)[number];

/** Each has connections and series of its own. */
const MAX_UPSTREAMS = 32;
const MAX_VOICES = 1000;
/** Voices of one's own, and upstreams of one: each pair has series of its own. */
const MAX_OWN_VOICES = 100;
const MAX_PLACES = 8;
const MAX_OPEN = 65_535;
/** Variables so named are kept from child processes. */
const SECRET_NAME = /_(?:KEY|TOKEN|SECRET)$/i;
const RATES = { min: 8000, max: 48_000 };

/** Throws invalid_config, which names the entry, its field, and what is expected; never a key. */
export function readUpstreamsFile(text: string, secrets: Secrets): UpstreamsFile {
  const value = parse(text);
  const { upstreams: list, voices = {}, ...others } = isObject(value) ? value : { upstreams: value };
  if (!Array.isArray(list)) {
    throw invalid(
      'it has no list of upstreams, expected JSON: [{ ... }], or { "upstreams": [{ ... }], "voices": { ... } }',
    );
  }
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw invalid(`it has a field ${JSON.stringify(unknown)}, expected upstreams, voices`);
  const services = readServices(list, secrets);
  return { services, voices: readVoices(voices, services) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw invalid(jsonFault(text, thrown));
  }
}

function readVoices(value: unknown, services: readonly ServiceConfig[]): VoiceConfig[] {
  if (!isObject(value)) throw invalid('voices: expected an object: { "anna": ["cartesia:ID", "ID"] }');
  const entries = Object.entries(value);
  if (entries.length > MAX_OWN_VOICES) {
    throw invalid(`voices: ${entries.length} entries, expected at most ${MAX_OWN_VOICES}`);
  }
  return entries.map(([name, places]) => {
    const label = `voice ${JSON.stringify(name.slice(0, 64))}`;
    if (!isOwnVoiceName(name)) {
      throw invalid(`${label}: expected letters, digits, dots, hyphens and underscores, at most 64`);
    }
    const isList = Array.isArray(places) && places.length > 0 && places.length <= MAX_PLACES;
    if (!isList) throw invalid(`${label}: expected a list of 1 to ${MAX_PLACES} voices of upstreams`);
    return {
      name,
      upstreamVoices: places.map((place: unknown, index) => {
        if (places.indexOf(place) < index)
          throw invalid(`${label}: a voice is listed twice, expected each once`);
        return checkedPlace(place, label, services);
      }),
    };
  });
}

/** A voice of an upstream that there is, and that may be asked for. */
function checkedPlace(place: unknown, label: string, services: readonly ServiceConfig[]): string {
  const names = services.map(({ name }) => `${name}:`).join(", ");
  const expected = `expected voices that begin with ${names}, or an id of the first upstream's without a colon`;
  if (typeof place !== "string" || place === "") throw invalid(`${label}: ${expected}`);
  const voice = splitUpstreamVoice(place);
  if (voice === null) {
    if (place.includes(":")) throw invalid(`${label}: ${expected}`);
    return place;
  }
  const service = services.find(({ name }) => name === voice.name);
  if (service === undefined) throw invalid(`${label}: no upstream is called ${voice.name}, ${expected}`);
  if (voice.id === "" || !isListedVoice(voice.id, service.voices)) {
    throw invalid(`${label}: expected one of the voices that upstreams lists for ${voice.name}`);
  }
  return place;
}

function readServices(list: readonly unknown[], secrets: Secrets): ServiceConfig[] {
  if (list.length > MAX_UPSTREAMS) throw invalid(`${list.length} entries, expected at most ${MAX_UPSTREAMS}`);
  const configs = list.map((entry: unknown, index) => readEntry(entry, index + 1, secrets));
  const names = configs.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalid(`two entries are called ${twice}, expected each name once`);
  return configs;
}

function readEntry(value: unknown, number: number, secrets: Secrets): ServiceConfig {
  const entry = new Entry(value, number);
  const name = entry.text("name") ?? entry.wrong("name", "a name such as cartesia");
  if (!isUpstreamName(name) || name.length > 32) {
    entry.wrong("name", "small letters, digits and hyphens, a letter first, at most 32");
  }
  const serviceName = entry.text("service") ?? name;
  const service = Object.hasOwn(SERVICES, serviceName) ? SERVICES[serviceName] : undefined;
  if (service === undefined) return entry.wrong("service", `one of ${Object.keys(SERVICES).join(", ")}`);
  const url =
    entry.text("url") ??
    service.url ??
    entry.wrong("url", `where the service is: ${SCHEMES[service.scheme ?? "http"].expected}`);
  const sampleRate = entry.integer("sample-rate", RATES);
  return {
    name,
    service: serviceName,
    baseUrl: checkedUrl(url, entry, service.scheme),
    key: keyOf(entry, service, secrets),
    model: entry.text("model") ?? "",
    sampleRate,
    voices: entry.texts("voices", MAX_VOICES),
    maxOpen: entry.integer("max-open", { min: 1, max: MAX_OPEN }),
  };
}

function checkedUrl(url: string, entry: Entry, scheme?: Scheme): string {
  parseBaseUrl(url, `upstreams, ${entry.label}, url`, scheme);
  // Clients differ in whether the base holds the version; our paths bring their own.
  return url.replace(/\/+$/, "").replace(/\/v1$/, "");
}

function keyOf(entry: Entry, service: Service, secrets: Secrets): string {
  const [variable, path] = [entry.text("key-env"), entry.text("key-file")];
  if (service.key === "none" && (variable ?? path) !== undefined) {
    entry.wrong(variable === undefined ? "key-file" : "key-env", "none: the service asks for no key");
  }
  if (variable !== undefined && path !== undefined) entry.wrong("key-file", "one of key-env and key-file");
  if (variable !== undefined) {
    if (!SECRET_NAME.test(variable)) {
      entry.wrong(
        "key-env",
        "a name that ends in _KEY, _TOKEN or _SECRET: others the built-in service sees, too",
      );
    }
    const key = secrets.env(variable) ?? "";
    if (key === "") entry.wrong("key-env", `a variable of the environment that is set: ${variable} is not`);
    return checkedKey(key, `upstreams, ${entry.label}, key-env`);
  }
  if (path !== undefined) {
    const key = readKey(path, entry, secrets);
    return checkedKey(key, `upstreams, ${entry.label}, key-file`);
  }
  if (service.key === "needed") entry.wrong("key-env", "the variable that holds its key, or key-file");
  return "";
}

function readKey(path: string, entry: Entry, secrets: Secrets): string {
  try {
    return secrets.file(path).trim();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return entry.wrong("key-file", `a file that can be read: ${reason}`);
  }
}

/** One entry of the list; what is wrong names it. */
class Entry {
  readonly label: string;
  readonly #value: JsonObject;

  constructor(value: unknown, number: number) {
    if (!isObject(value))
      throw invalid(`entry ${number} is no object, expected { "name": ..., "service": ... }`);
    this.#value = value;
    this.label = typeof value.name === "string" ? `entry ${value.name.slice(0, 40)}` : `entry ${number}`;
    const unknown = Object.keys(value).find((key) => !FIELDS.some((field) => field === key));
    if (unknown !== undefined) {
      throw invalid(`${this.label} has a field ${JSON.stringify(unknown)}, expected ${FIELDS.join(", ")}`);
    }
  }

  /** undefined: it is not there. */
  text(field: Field): string | undefined {
    const value = this.#value[field];
    if (value === undefined) return undefined;
    return typeof value === "string" && value !== "" ? value : this.wrong(field, "a text");
  }

  texts(field: Field, most: number): readonly string[] {
    const value = this.#value[field];
    if (value === undefined) return [];
    const isList = Array.isArray(value) && value.every((item) => typeof item === "string" && item !== "");
    return isList && value.length <= most ? value : this.wrong(field, `a list of at most ${most} texts`);
  }

  integer(field: Field, { min, max }: { readonly min: number; readonly max: number }): number | null {
    const value = this.#value[field];
    if (value === undefined) return null;
    const isInRange =
      typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max;
    return isInRange ? value : this.wrong(field, `an integer from ${min} to ${max}`);
  }

  wrong(field: Field, expected: string): never {
    throw invalid(`${this.label}, ${field}: expected ${expected}`);
  }
}

function invalid(what: string): GatewayError {
  return new GatewayError("invalid_config", `Setting upstreams can't be used: ${what}`, {
    field: "upstreams",
  });
}
