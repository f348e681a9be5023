/** Every parameter of the interface, from its OpenAPI document. Endpoints that take the same body are one group. */
import { readFileSync } from "node:fs";
import type { JsonSchema } from "../../../src/service/http/json-schema.ts";
import { bodyOf, type Endpoint, endpointsOf, type OpenApiDocument, resolve } from "../openapi/document.ts";

export interface Group {
  readonly tag: string;
  /** As "POST /v1/history/download". */
  readonly endpoints: readonly string[];
  /** Of the path, the query, the headers and the body, as "settings.name" and "inputs[].text". */
  readonly parameters: readonly string[];
}

const PAGE = new URL("../../../docs/openapi.json", import.meta.url);
/** For operators and tests, no part of the interface. */
const OWN_TAG = "The service's own";

export function documentedGroups(): Group[] {
  const document = JSON.parse(readFileSync(PAGE, "utf8")) as OpenApiDocument;
  const groups = new Map<string, Endpoint[]>();
  for (const endpoint of endpointsOf(document)) {
    if (endpoint.operation.tags.includes(OWN_TAG)) continue;
    const key = String(bodyOf(endpoint)?.schema.$ref ?? nameOf(endpoint));
    groups.set(key, [...(groups.get(key) ?? []), endpoint]);
  }
  return [...groups.values()]
    .map((endpoints) => ({
      tag: endpoints[0]?.operation.tags[0] ?? "",
      endpoints: endpoints.map(nameOf),
      parameters: [...new Set(endpoints.flatMap((endpoint) => parametersOf(document, endpoint)))],
    }))
    .filter(({ parameters }) => parameters.length > 0);
}

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`;

function parametersOf(document: OpenApiDocument, endpoint: Endpoint): string[] {
  const body = bodyOf(endpoint);
  return [
    ...(endpoint.operation.parameters ?? []).map(({ name }) => name),
    ...(body === undefined ? [] : leavesOf(document, body.schema, "")),
  ];
}

/** The names of the values in it: a list of objects has those of its items, JSON in a text those of its content. */
function leavesOf(document: OpenApiDocument, given: JsonSchema, name: string): string[] {
  const { properties, items, contentSchema } = resolve(document, given);
  if (isSchema(properties)) {
    const prefix = name === "" ? "" : `${name}.`;
    return Object.entries(properties).flatMap(([key, schema]) =>
      leavesOf(document, schema as JsonSchema, prefix + key),
    );
  }
  if (isSchema(items) && isSchema(resolve(document, items).properties)) {
    return leavesOf(document, items, `${name}[]`);
  }
  return isSchema(contentSchema) ? leavesOf(document, contentSchema, name) : [name];
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}
