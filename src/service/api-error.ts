/** The error bodies of the interface: the current shape, the validation list, and FastAPI's own. */

interface ApiErrorDetail {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  /** The older status string that clients still look at; the code where none is known. */
  readonly status?: string;
  /** The offending field. */
  readonly param?: string;
}

/** HTTP status of each error type. */
const STATUS_OF_TYPE: Readonly<Record<string, number>> = {
  validation_error: 400,
  invalid_request: 400,
  authentication_error: 401,
  payment_required: 402,
  authorization_error: 403,
  not_found: 404,
  conflict: 409,
  rate_limit_error: 429,
  internal_error: 500,
  service_unavailable: 503,
};

/** One entry of a 422 answer, as pydantic v2 words it. */
export interface ValidationEntry {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/** Thrown by handlers; the server turns it into an answer. Not a GatewayError: these are the interface's words, not ours. */
export class ApiError extends Error {
  readonly httpStatus: number;
  readonly #detail: ApiErrorDetail | readonly ValidationEntry[] | string;

  constructor(httpStatus: number, detail: ApiErrorDetail | readonly ValidationEntry[] | string) {
    super(`Refused with ${httpStatus}`);
    this.name = "ApiError";
    this.httpStatus = httpStatus;
    this.#detail = detail;
  }

  /** The current shape, with the status that its type has unless told otherwise. */
  static of(detail: ApiErrorDetail, httpStatus = STATUS_OF_TYPE[detail.type] ?? 400): ApiError {
    return new ApiError(httpStatus, detail);
  }

  static invalid(entries: readonly ValidationEntry[]): ApiError {
    return new ApiError(422, entries);
  }

  /** 400 `validation_error`: of the right shape, but nothing that can be done. */
  static unfit(
    code: string,
    message: string,
    more: { readonly status?: string; readonly param?: string } = {},
  ): ApiError {
    return ApiError.of({ type: "validation_error", code, message, ...more });
  }

  /** 404 of what a path or a field names: `thing` in the words of the code, e.g. "history_item". */
  static notFound(thing: string, id: string): ApiError {
    const param = `${thing}_id`;
    const message = `A ${thing.replaceAll("_", " ")} with ${param} '${id.slice(0, 64)}' was not found.`;
    return ApiError.of({ type: "not_found", code: `${thing}_not_found`, message, param });
  }

  /** 429 `system_busy`: what waits already is as much as may wait. */
  static busy(message = "The system is busy, try again later."): ApiError {
    return ApiError.of({ type: "rate_limit_error", code: "system_busy", message });
  }

  /** 503 `storage_full`: nothing can be kept, and nothing was changed. */
  static storageFull(): ApiError {
    const message = "The disk of the service is full: nothing more can be kept until there is room again.";
    return ApiError.of({ type: "service_unavailable", code: "storage_full", message });
  }

  /** 503 `service_unavailable`. */
  static unavailable(message: string): ApiError {
    return ApiError.of({ type: "service_unavailable", code: "service_unavailable", message });
  }

  /** The body as JSON. What was sent is left out of a validation answer where it is nested too deeply to be written. */
  json(traceId: string): string {
    const body = this.body(traceId);
    try {
      return JSON.stringify(body);
    } catch (thrown) {
      const detail = this.#detail;
      if (!(thrown instanceof RangeError) || typeof detail === "string" || !isEntries(detail)) throw thrown;
      return JSON.stringify({
        detail: detail.map(({ type, loc, msg }) => ({ type, loc, msg, input: null })),
      });
    }
  }

  /** The JSON body; `traceId` equals the answer's x-trace-id. */
  body(traceId: string): { readonly detail: unknown } {
    const detail = this.#detail;
    if (typeof detail === "string" || isEntries(detail)) return { detail };
    const { type, code, message, status, param } = detail;
    return {
      detail: {
        type,
        code,
        message,
        status: status ?? code,
        request_id: traceId,
        ...(param === undefined ? {} : { param }),
      },
    };
  }
}

function isEntries(
  detail: ApiErrorDetail | readonly ValidationEntry[],
): detail is readonly ValidationEntry[] {
  return Array.isArray(detail);
}
