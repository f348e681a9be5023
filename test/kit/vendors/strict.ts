/** Checks of what a scripted service is sent: each says what the service would refuse. */
import type { FakeRequest } from "../../helpers/fake-answer.ts";

export type Json = Readonly<Record<string, unknown>>;

/** What is wrong with a request; undefined: nothing. */
export class Strict {
  readonly #request: Pick<FakeRequest, "headers">;
  fault: string | undefined;

  constructor(request: Pick<FakeRequest, "headers">) {
    this.#request = request;
  }

  header(name: string, expected: string | RegExp): this {
    const value = String(this.#request.headers[name] ?? "");
    const isRight = typeof expected === "string" ? value === expected : expected.test(value);
    return this.must(isRight, `header ${name} is ${JSON.stringify(value)}`);
  }

  /** Fields that there have to be, by type or value; a question mark behind the name: or not at all. No others. */
  fields(value: unknown, where: string, expected: Readonly<Record<string, unknown>>): this {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return this.must(false, `${where} is no object`);
    const given = value as Json;
    const names = Object.keys(expected).map((name) => name.replace("?", ""));
    for (const name of Object.keys(given)) this.must(names.includes(name), `${where}.${name} is not known`);
    for (const [key, rule] of Object.entries(expected)) {
      const name = key.replace("?", "");
      if (key.endsWith("?") && given[name] === undefined) continue;
      this.must(isAs(given[name], rule), `${where}.${name} is ${JSON.stringify(given[name])}`);
    }
    return this;
  }

  must(isRight: boolean, fault: string): this {
    if (!isRight) this.fault ??= fault;
    return this;
  }
}

function isAs(value: unknown, rule: unknown): boolean {
  if (rule === "object") return typeof value === "object" && value !== null;
  if (rule === "string" || rule === "number" || rule === "boolean") return typeof value === rule;
  if (Array.isArray(rule)) return rule.includes(value);
  return value === rule;
}
