/** Response headers as undici gives them, read without trust. */

/** Names in lower case; a header that came more than once is a list. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The header, the first one where it came more than once. */
export function headerOf(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : value?.[0];
}

/** A header that counts something; undefined where it is none, or no whole number of up to 15 digits. */
export function countOf(headers: ResponseHeaders, name: string): number | undefined {
  const value = headerOf(headers, name);
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}
