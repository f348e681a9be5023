/**
 * A collector of traces that is as strict as the OTLP specification lets one be: unknown fields, wrong ids, numbers where
 * 64 bits are text, times that end before they begin are refused with 400, and the test that holds it sees why.
 */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

const traceId = z.string().regex(/^(?!0{32})[0-9a-f]{32}$/);
const spanId = z.string().regex(/^(?!0{16})[0-9a-f]{16}$/);
const nanos = z.string().regex(/^[1-9]\d{18}$/);
const scalar = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ boolValue: z.boolean() }),
  z.strictObject({ intValue: z.string().regex(/^-?\d{1,19}$/) }),
  z.strictObject({ doubleValue: z.number() }),
]);
const value = z.union([scalar, z.strictObject({ arrayValue: z.strictObject({ values: z.array(scalar) }) })]);
const attributes = z
  .array(z.strictObject({ key: z.string().min(1), value }))
  .refine((list) => new Set(list.map(({ key }) => key)).size === list.length, "a key twice");
const span = z
  .strictObject({
    traceId,
    spanId,
    parentSpanId: spanId.exactOptional(),
    flags: z.number().int().min(0).max(0xffff_ffff),
    name: z.string().min(1),
    kind: z.number().int().min(1).max(5),
    startTimeUnixNano: nanos,
    endTimeUnixNano: nanos,
    attributes,
    events: z.array(z.strictObject({ timeUnixNano: nanos, name: z.string().min(1), attributes })),
    status: z.strictObject({
      code: z.number().int().min(0).max(2).exactOptional(),
      message: z.string().exactOptional(),
    }),
  })
  .refine((one) => BigInt(one.endTimeUnixNano) >= BigInt(one.startTimeUnixNano), "ends before it begins");
const request = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string().min(1), version: z.string() }),
          spans: z.array(span),
        }),
      ),
    }),
  ),
});

type RawSpan = z.infer<typeof span>;
type Flat = Readonly<Record<string, unknown>>;

export interface CollectedSpan extends Omit<RawSpan, "attributes" | "events"> {
  readonly attributes: Flat;
  readonly events: readonly { readonly name: string; readonly timeUnixNano: string }[];
  readonly resource: Flat;
}

export interface Collected {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export class Collector implements AsyncDisposable {
  readonly requests: Collected[] = [];
  readonly spans: CollectedSpan[] = [];
  /** Why requests were refused. */
  readonly faults: string[] = [];
  /** What it answers in place of taking them; null: it takes them. */
  instead: ((res: ServerResponse) => void) | null = null;
  readonly #server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("end", () => {
      const body = Buffer.concat(pieces).toString("utf8");
      this.requests.push({ path: req.url ?? "", headers: req.headers, body });
      if (this.instead !== null) this.instead(res);
      else this.#take(body, res);
    });
  });

  static async start(): Promise<Collector> {
    const collector = new Collector();
    collector.#server.listen(0, "127.0.0.1");
    await once(collector.#server, "listening");
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  named(name: string): CollectedSpan[] {
    return this.spans.filter((one) => one.name === name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take(body: string, res: ServerResponse): void {
    const read = request.safeParse(JSON.parse(body));
    if (!read.success) {
      this.faults.push(read.error.message);
      res.writeHead(400).end();
      return;
    }
    for (const { resource, scopeSpans } of read.data.resourceSpans) {
      for (const one of scopeSpans.flatMap(({ spans }) => spans)) {
        this.spans.push({ ...one, attributes: flat(one.attributes), resource: flat(resource.attributes) });
      }
    }
    res.setHeader("content-type", "application/json").end("{}");
  }
}

function flat(list: z.infer<typeof attributes>): Flat {
  return Object.fromEntries(list.map(({ key, value: each }) => [key, plain(each)]));
}

function plain(each: z.infer<typeof value>): unknown {
  if ("intValue" in each) return Number(each.intValue);
  if ("arrayValue" in each) return each.arrayValue.values.map(plain);
  return Object.values(each)[0];
}
