/**
 * An endpoint as it is declared: what it takes and what it answers with. From the declaration it is registered (what it
 * takes is read, then the key is looked at, then its handler is called) and described in the OpenAPI document.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { IGNORED_HEADER, ignoredHeader } from "../../kit/ignored-names.ts";
import { ApiError, type ValidationEntry } from "../api-error.ts";
import type { Answer, ErrorStatus } from "./answers.ts";
import { jsonSource } from "./body.ts";
import { authorize, type ServiceContext } from "./context.ts";
import { formSource } from "./form.ts";
import type { JsonSchema } from "./json-schema.ts";
import { readShape, type Shape, type Values } from "./schema.ts";

type Source = Readonly<Record<string, unknown>>;

/** Under this name in the document. `raw`: the handler reads it itself. */
type Body<B extends Shape> =
  | { readonly kind: "json" | "form"; readonly name: string; readonly shape: B }
  | { readonly kind: "raw"; readonly schema: JsonSchema };

/** What a declaration may leave out. */
interface Parts<P extends Shape, Q extends Shape, B extends Shape> {
  readonly params: P;
  readonly query: Q;
  readonly body: Body<B> | null;
  /** Headers that it looks at, beside the key. */
  readonly headers: Readonly<Record<string, JsonSchema>>;
  readonly description: string;
  readonly errors: readonly ErrorStatus[];
  /** Answers that differ from the common errors, by status. */
  readonly otherAnswers: Readonly<Record<number, Answer>>;
  /** Default true. */
  readonly needsKey: boolean;
}

export interface Operation<P extends Shape = Shape, Q extends Shape = Shape, B extends Shape = Shape>
  extends Parts<P, Q, B> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** As Fastify writes it: `:name` for a parameter. */
  readonly url: string;
  /** Its name in generated clients. */
  readonly id: string;
  /** The section that it is of. */
  readonly tag: string;
  readonly summary: string;
  readonly status: 200 | 204;
  readonly answer: Answer;
}

type NoShape = Readonly<Record<never, never>>;

type Declaration<P extends Shape, Q extends Shape, B extends Shape> = Partial<Parts<P, Q, B>> &
  Omit<Operation<P, Q, B>, keyof Parts<P, Q, B> | "status"> & { readonly status?: 200 | 204 };

export function operation<
  const P extends Shape = NoShape,
  const Q extends Shape = NoShape,
  const B extends Shape = NoShape,
>(declared: Declaration<P, Q, B>): Operation<P, Q, B> {
  // Without a shape it is the empty one, which is what its type says then.
  const none = {} as P & Q;
  return {
    params: none,
    query: none,
    body: null,
    headers: {},
    description: "",
    errors: [],
    otherAnswers: {},
    needsKey: true,
    status: 200,
    ...declared,
  };
}

/** Fields of a request that nothing is done of, as the vendor does nothing of them. */
function tellIgnored(reply: FastifyReply, ignored: readonly string[]): void {
  if (ignored.length > 0) reply.header(IGNORED_HEADER, ignoredHeader(ignored));
}

/** One request of an operation, its values read. */
export interface Call<P extends Shape = Shape, Q extends Shape = Shape, B extends Shape = Shape> {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** When its handling began; performance.now(). */
  readonly beganMs: number;
  readonly params: Values<P>;
  readonly query: Values<Q>;
  /** Empty where it takes none, or reads it itself. */
  readonly body: Values<B>;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** What the document says of the route. */
    operation?: Operation;
  }
}

/**
 * Registers it; a form's operation in a scope of Uploads.register. In the interface's order: what is not of the shape is
 * refused with 422 before the key is looked at, and a stranger's files are not kept meanwhile. Files are freed when the
 * handler is done.
 */
export function route<P extends Shape, Q extends Shape, B extends Shape>(
  app: FastifyInstance,
  context: ServiceContext,
  declared: Operation<P, Q, B>,
  handle: (call: Call<P, Q, B>) => Promise<unknown>,
  options: { readonly authorize?: typeof authorize } = {},
): void {
  const requireKey = (request: FastifyRequest): void => {
    if (declared.needsKey) (options.authorize ?? authorize)(context, request);
  };
  const { method, url, body } = declared;
  app.route({
    method,
    url,
    config: { operation: declared },
    handler: async (request, reply) => {
      const beganMs = performance.now();
      if (body?.kind !== "form") {
        const values = readRequest(declared, { request, reply }, (shape, faults) =>
          body === null || body.kind === "raw" ? {} : jsonSource(rawBody(request), { shape, faults }),
        );
        requireKey(request);
        return handle({ request, reply, beganMs, ...values });
      }
      const stranger = apiErrorOf(() => requireKey(request));
      const upload = await context.uploads.read(request, reply, { stranger });
      try {
        const values = readRequest(declared, { request, reply }, (shape) => formSource(upload, shape));
        if (stranger !== null) throw stranger;
        return await handle({ request, reply, beganMs, ...values });
      } finally {
        await upload.close();
      }
    },
  });
}

/** Throws ApiError 422 with all that is wrong: of the path, the query and the body, in this order. */
function readRequest<P extends Shape, Q extends Shape, B extends Shape>(
  { params, query, body }: Operation<P, Q, B>,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  sourceOf: (shape: Shape, faults: readonly ValidationEntry[]) => Source,
): Pick<Call<P, Q, B>, "params" | "query" | "body"> {
  const faults: ValidationEntry[] = [];
  const ignored: string[] = [];
  const values = {
    params: readShape(params, request.params as Source, { origin: "path", faults }),
    query: readShape(query, request.query as Source, { origin: "query", faults, ignored }),
    // One that it reads itself has no shape here.
    body:
      body === null || body.kind === "raw"
        ? ({} as Values<B>)
        : readShape(body.shape, sourceOf(body.shape, faults), { origin: "body", faults, ignored }),
  };
  tellIgnored(reply, ignored);
  if (values.params === undefined || values.query === undefined || values.body === undefined) {
    throw ApiError.invalid(faults);
  }
  return { params: values.params, query: values.query, body: values.body };
}

function rawBody(request: FastifyRequest) {
  // The server reads bodies as bytes.
  return { contentType: request.headers["content-type"], bytes: request.body as Uint8Array | undefined };
}

/** The error that the action throws; null where it throws none. */
function apiErrorOf(action: () => void): ApiError | null {
  try {
    action();
    return null;
  } catch (thrown) {
    if (thrown instanceof ApiError) return thrown;
    throw thrown;
  }
}
