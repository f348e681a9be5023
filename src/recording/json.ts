/** What stands in a line of a recording. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export function isList(json: Json): json is readonly Json[] {
  return Array.isArray(json);
}
