/** GET /openapi.json: the OpenAPI 3.1 document of the routes that there are, made from their declarations. Needs no key. */
import type { FastifyInstance } from "fastify";
import { type Answer, ERROR_ANSWERS, json, TRACE_HEADERS } from "./answers.ts";
import type { ServiceContext } from "./context.ts";
import { DEFINITION, type JsonSchema, named, nameOf } from "./json-schema.ts";
import { type Operation, operation, route } from "./operation.ts";
import { type Field, jsonOfShape, type Shape } from "./schema.ts";

/** The interface's version, and not the program's. */
const INTERFACE_VERSION = "1.0";

type Json = Readonly<Record<string, unknown>>;

interface DocumentedRoute {
  readonly url: string;
  readonly operation: Operation;
}

const DOCUMENT = operation({
  method: "GET",
  url: "/openapi.json",
  id: "get_openapi",
  tag: "The service's own",
  summary: "This document",
  needsKey: false,
  answer: json({ type: "object" }, "OpenAPI 3.1."),
});

/**
 * To be called before any other route is registered: it sees them all. A route without a declaration is a mistake of the
 * program and throws.
 */
export function registerOpenApi(app: FastifyInstance, context: ServiceContext): void {
  const routes: DocumentedRoute[] = [];
  app.addHook("onRoute", ({ url, config }) => {
    if (config?.operation === undefined) throw new TypeError(`The route ${url} has no declaration`);
    routes.push({ url, operation: config.operation });
  });
  let text = "";
  app.addHook("onReady", async () => {
    text = JSON.stringify(openApiDocument(routes));
  });
  route(app, context, DOCUMENT, async ({ reply }) => reply.type("application/json").send(text));
}

function openApiDocument(routes: readonly DocumentedRoute[]): Json {
  const schemas: Record<string, unknown> = {};
  const paths: Record<string, Record<string, unknown>> = {};
  for (const { url, operation: declared } of routes) {
    const path = url.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [declared.method.toLowerCase()]: describe(declared) };
  }
  const document = {
    openapi: "3.1.0",
    info: {
      title: "voicewire speech service",
      version: INTERFACE_VERSION,
      description:
        "Speech, sound effects and what belongs to them. Requests are held against their shape (422), then against the key " +
        "(401), then against what can be done. Where a schema has x-refused-with, a value out of its bounds is refused " +
        "with that status instead of 422. Unknown fields are ignored.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "Where this document comes from" }],
    security: [{ "xi-api-key": [] }, { bearer: [] }],
    tags: [...new Set(routes.map((one) => one.operation.tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        "xi-api-key": { type: "apiKey", in: "header", name: "xi-api-key" },
        bearer: { type: "http", scheme: "bearer" },
      },
      responses: Object.fromEntries(
        Object.values(ERROR_ANSWERS).map(({ name, answer }) => [name, responseOf(answer)]),
      ),
    },
  };
  const written = withoutDefinitions(document, schemas) as typeof document;
  return { ...written, components: { schemas, ...written.components } };
}

function describe(declared: Operation): Json {
  const { description, needsKey } = declared;
  const parameters = [
    ...parametersOf(declared.params, "path"),
    ...parametersOf(declared.query, "query"),
    ...Object.entries(declared.headers).map(([name, schema]) => ({ name, in: "header", schema })),
  ];
  return {
    operationId: declared.id,
    tags: [declared.tag],
    summary: declared.summary,
    ...(description === "" ? {} : { description }),
    ...(needsKey ? {} : { security: [] }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...requestBodyOf(declared),
    responses: responsesOf(declared),
  };
}

function parametersOf(shape: Shape, place: "path" | "query"): Json[] {
  return Object.entries(shape).map(([name, field]) => {
    const { description, deprecated, ...schema } = field.json;
    return {
      name,
      in: place,
      required: field.isRequired,
      description,
      ...(deprecated === true ? { deprecated } : {}),
      schema,
    };
  });
}

function requestBodyOf({ body }: Operation): Json {
  if (body === null) return {};
  const isForm = body.kind === "form";
  const schema =
    body.kind === "raw" ? body.schema : named(body.name, jsonOfShape(body.shape, { isJson: !isForm }));
  const type = isForm ? "multipart/form-data" : "application/json";
  return { requestBody: { required: true, content: { [type]: { schema } } } };
}

function responsesOf(declared: Operation): Json {
  const { params, query, body, needsKey, errors } = declared;
  const canBeInvalid = (field: Field<unknown>) =>
    field.json.type !== "string" || field.json.enum !== undefined;
  const isChecked = body !== null || [...Object.values(query), ...Object.values(params)].some(canBeInvalid);
  const statuses = [400, ...(needsKey ? [401] : []), ...errors, ...(isChecked ? [422] : []), 500, 503];
  const common = statuses.map((status) => [
    status,
    { $ref: `#/components/responses/${ERROR_ANSWERS[status]?.name}` },
  ]);
  const own = Object.entries({ ...declared.otherAnswers, [declared.status]: declared.answer });
  return Object.fromEntries([...common, ...own.map(([status, answer]) => [status, responseOf(answer)])]);
}

function responseOf({ description, content, headers }: Answer): Json {
  const all = { ...TRACE_HEADERS, ...headers };
  const media = Object.entries(content ?? {}).map(([type, schema]) => [type, { schema }]);
  return {
    description,
    headers: Object.fromEntries(Object.entries(all).map(([name, schema]) => [name, { schema }])),
    ...(content === undefined ? {} : { content: Object.fromEntries(media) }),
  };
}

/** A copy; what its references mean goes to `schemas` by their names. */
function withoutDefinitions(value: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => withoutDefinitions(item, schemas));
  if (typeof value !== "object" || value === null) return value;
  const definition = (value as JsonSchema)[DEFINITION];
  if (definition !== undefined) {
    const name = nameOf(value as JsonSchema);
    schemas[name] ??= withoutDefinitions(definition, schemas);
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, withoutDefinitions(one, schemas)]),
  );
}
