/** The service's OpenAPI document as the tests read it. */
import type { JsonSchema } from "../../../src/service/http/json-schema.ts";

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

interface Media {
  readonly schema: JsonSchema;
}

export interface Response {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, Media>>;
  readonly content?: Readonly<Record<string, Media>>;
}

export interface DocumentOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response>>;
}

export interface OpenApiDocument {
  readonly openapi: string;
  readonly servers: readonly unknown[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly securitySchemes: Readonly<Record<string, unknown>>;
  };
}

export interface Endpoint {
  readonly method: string;
  /** With {names}. */
  readonly path: string;
  readonly operation: DocumentOperation;
}

export async function fetchDocument(serviceUrl: string): Promise<OpenApiDocument> {
  const answer = await fetch(`${serviceUrl}/openapi.json`);
  if (answer.status !== 200) throw new Error(`Expected the document, got ${answer.status}`);
  return (await answer.json()) as OpenApiDocument;
}

export function endpointsOf(document: OpenApiDocument): Endpoint[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** What a reference means; anything else as it is. */
export function resolve<T extends object>(document: OpenApiDocument, given: T): T {
  const { $ref: reference, ...rest } = given as T & { readonly $ref?: unknown };
  if (typeof reference !== "string") return given;
  let at: unknown = document;
  for (const step of reference.replace(/^#\//, "").split("/")) at = Object(at)[step];
  if (at === undefined) throw new Error(`The document refers to ${reference}, which is not there`);
  return { ...(at as T), ...rest };
}

/** The body's schema with its content type; undefined where it takes none. */
export function bodyOf({
  operation,
}: Endpoint): { readonly type: string; readonly schema: JsonSchema } | undefined {
  const [entry] = Object.entries(operation.requestBody?.content ?? {});
  return entry === undefined ? undefined : { type: entry[0], schema: entry[1].schema };
}
