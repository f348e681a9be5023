/** Good requests for every HTTP endpoint: the gateway's own, and those of the speech service by its OpenAPI document. */
import { readFileSync } from "node:fs";
import type { JsonSchema } from "../../../src/service/http/json-schema.ts";
import {
  bodyOf,
  type Endpoint,
  endpointsOf,
  type OpenApiDocument,
  resolve,
} from "../../service/openapi/document.ts";

export interface RequestSeed {
  readonly method: string;
  /** As the route names it. */
  readonly route: string;
  readonly path: string;
  readonly type?: string;
  readonly body?: string;
  /** One in so many asks for what it is, the others for its head: what is opened costs as much as a hundred others. */
  readonly openedOneIn?: number;
}

const VOICE = "21m00Tcm4TlvDq8ikWAM";
const JSON_TYPE = "application/json";
const COMMANDS: Readonly<Record<string, object>> = {
  speak: { text: "Hello there.", voice_id: VOICE, priority: "queue" },
  text: { text: "Hello ", utterance_id: "u" },
  flush: { utterance_id: "u" },
  end: { utterance_id: "u" },
  dialogue: { inputs: [{ text: "Hello.", voice_id: VOICE }] },
  play: { sound: { kind: "tone", hertz: [440], on_ms: 20, off_ms: 20, ms: 80 } },
  prepare: { text: "Hello.", prepared_id: "p" },
  interrupt: { keep_ms: 0 },
  cancel: { utterance_id: "u" },
  resume: {},
  mark: { name: "m" },
  stop: { utterance_id: "u", fade_ms: 10 },
  hangup: { call_id: "c" },
};
const OTHER_BODIES: Readonly<Record<string, object>> = {
  "/tokens": { sessions: ["s"], allow: ["listen"], seconds: 60 },
  "/v1/audio/speech": { model: "tts-1", input: "Hello.", voice: "alloy", response_format: "pcm", speed: 1 },
  "/carrier/rtp": { session: "s", remote: "127.0.0.1:9", format: "ulaw_8000" },
  "/carrier/audiosocket": { session: "s", text: "Hello." },
  "/carrier/jambonz/tts": {
    vendor: "custom:v",
    language: "en-US",
    voice: VOICE,
    type: "text",
    text: "Hello.",
  },
};

/** Of a route as it was mounted. */
export function gatewaySeed(method: string, route: string): RequestSeed {
  const path = route.replaceAll(/:\w+/g, "s").replace("*", "voices");
  const name = /^\/live\/:session\/(\w+)$/.exec(route)?.[1] ?? "";
  const verb = { any: "GET", del: "DELETE" }[method] ?? method.toUpperCase();
  const body = COMMANDS[name] ?? OTHER_BODIES[route] ?? (verb === "POST" ? {} : undefined);
  return {
    method: verb,
    route,
    path,
    ...(body === undefined ? {} : { type: JSON_TYPE, body: JSON.stringify(body) }),
    // An encoder of its own for each.
    ...(verb === "GET" && route.endsWith(".mp3") ? { openedOneIn: 8 } : {}),
  };
}

/** `file`: docs/openapi.json. */
export function serviceSeeds(file: string): RequestSeed[] {
  const document = JSON.parse(readFileSync(file, "utf8")) as OpenApiDocument;
  return endpointsOf(document).map((endpoint) => serviceSeed(document, endpoint));
}

function serviceSeed(document: OpenApiDocument, endpoint: Endpoint): RequestSeed {
  const { method, path: route, operation } = endpoint;
  const query = (operation.parameters ?? [])
    .filter((one) => one.in === "query")
    .map(({ name, schema }) => `${name}=${encodeURIComponent(String(sampleOf(document, schema)))}`);
  const path = `${route.replaceAll(/\{\w+\}/g, VOICE)}${query.length > 0 ? `?${query.join("&")}` : ""}`;
  const taken = bodyOf(endpoint);
  if (taken === undefined) return { method, route, path };
  const value = sampleOf(document, taken.schema);
  if (taken.type !== "multipart/form-data")
    return { method, route, path, type: taken.type, body: JSON.stringify(value) };
  const parts = Object.entries(Object(value)).map(
    ([name, one]) =>
      `--xyz\r\ncontent-disposition: form-data; name="${name}"${fileNameOf(one)}\r\n\r\n${String(one)}\r\n`,
  );
  return {
    method,
    route,
    path,
    type: "multipart/form-data; boundary=xyz",
    body: `${parts.join("")}--xyz--\r\n`,
  };
}

function fileNameOf(value: unknown): string {
  return typeof value === "string" && value.startsWith("RIFF") ? '; filename="a.wav"' : "";
}

/** A value that the schema may take, or nearly so. */
function sampleOf(document: OpenApiDocument, given: JsonSchema, depth = 0): unknown {
  const schema = resolve(document, given);
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined;
  if (choices?.[0] !== undefined) return sampleOf(document, choices[0], depth);
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const [type] = [schema.type].flat();
  if (type === "object") {
    const fields = Object.entries((schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>);
    return Object.fromEntries(
      depth > 4 ? [] : fields.map(([name, one]) => [name, sampleOf(document, one, depth + 1)]),
    );
  }
  if (type === "array") return [sampleOf(document, (schema.items ?? {}) as JsonSchema, depth + 1)];
  if (type === "integer" || type === "number") return schema.minimum ?? 1;
  if (type === "boolean") return false;
  return schema.contentMediaType === undefined && schema.format !== "binary" ? "Hello." : "RIFF0000WAVEfmt ";
}
