/** API keys: one key or none is configured; it comes as xi-api-key or as a bearer token. */
import { createHash, timingSafeEqual } from "node:crypto";
import { ApiError } from "../api-error.ts";

export interface Credentials {
  readonly "xi-api-key"?: string | string[] | undefined;
  readonly authorization?: string | undefined;
}

/** Throws the ApiError that the interface gives; `key` undefined accepts any key and none. */
export function requireKey(key: string | undefined, headers: Credentials): void {
  if (key === undefined) return;
  const given = headers["xi-api-key"];
  if (typeof given === "string") {
    if (isEqual(given, key)) return;
    throw wrongKey(given);
  }
  const bearer = /^Bearer\s+(\S.*)$/i.exec(headers.authorization ?? "")?.[1];
  if (bearer !== undefined && isEqual(bearer, key)) return;
  if (headers.authorization !== undefined) {
    throw unauthorized("invalid_authorization_header", "Invalid authorization header");
  }
  throw unauthorized(
    "needs_authorization",
    "Neither authorization header nor xi-api-key received, please provide one.",
  );
}

/** The interface shows no error of its own for it. */
export function wrongToken(): ApiError {
  const message = "Invalid single-use token: it was used, is older than 15 minutes, or was never given.";
  return unauthorized("invalid_single_use_token", message);
}

function unauthorized(status: string, message: string): ApiError {
  return ApiError.of({ type: "authentication_error", code: "unauthorized", status, message });
}

/** Keys in the current `sk_` + hex shape are refused with 400, others with 401: seen live. */
function wrongKey(given: string): ApiError {
  if (!/^sk_[0-9a-f]+$/.test(given)) return unauthorized("invalid_api_key", "Invalid API key");
  const detail = { type: "authentication_error", code: "invalid_api_key", message: "Invalid API key" };
  return ApiError.of(detail, 400);
}

/** In constant time, whatever the lengths. */
function isEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
