/** `voicewire usage`: what it reads, sums and exports. */
import { mkdirSync, writeFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import { runCli } from "../../../src/cli/commands.ts";
import { temporaryFolder } from "../../cli/program.ts";
import { memoryIo } from "./memory-io.ts";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
  return () => folder[Symbol.dispose]();
});

async function usage(...argv: string[]) {
  const io = memoryIo(["usage", ...argv], { env: {} });
  const code = await runCli(io);
  return { code, out: io.stdout.text, err: io.stderr.text };
}

let count = 0;
function request(more: object = {}): string {
  count += 1;
  return `${JSON.stringify({
    v: 1,
    id: `run-${count}`,
    seq: count,
    at: "2026-01-31T12:30:00.000Z",
    node: "a",
    type: "request",
    tenant: "acme",
    key: "app",
    upstream: "elevenlabs",
    model: "m",
    voice: "v",
    chars_sent: 10,
    chars_billed: 5,
    source: "header",
    audio_ms: 1000,
    cached: false,
    outcome: "done",
    ...more,
  })}\n`;
}

function ledger(name: string, ...lines: string[]): string {
  const path = folder.file(name);
  writeFileSync(path, lines.join(""));
  return path;
}

describe("sums", () => {
  test("are what was billed, else what was sent, and say the share of that", async () => {
    const path = ledger("a", request(), request({ chars_billed: null, source: "counted" }));
    expect(await usage(path)).toEqual({
      code: 0,
      err: "",
      out: [
        "tenant  key  characters  counted  requests  unknown  cached  audio s  heard s",
        "acme    app          15     67 %         2        0       0      2.0      0.0",
        "total                15     67 %         2        0       0      2.0      0.0",
        "",
      ].join("\n"),
    });
  });

  test("of what nobody knows are unknown, and not 0", async () => {
    const nobody = { chars_sent: null, chars_billed: null, source: "counted", tenant: "lab" };
    const { out, err } = await usage(
      ledger("a", request(nobody), request(nobody), request()),
      "--by",
      "tenant",
    );
    expect(out).toMatch(/\nlab +unknown +0 % +2 +2 /);
    expect(out).toMatch(/\ntotal +5 +0 % +3 +2 /);
    expect(err).toBe("voicewire: of 2 requests nobody knows the characters: they are in no sum\n");
  });

  test("are of all nodes, and of the time that is asked for", async () => {
    const a = ledger("a", request(), request({ at: "2026-02-01T00:00:00.000Z" }));
    const b = ledger("b", request({ node: "b" }));
    const { out } = await usage(a, b, a, "--by", "node,day", "--to", "2026-02-01", "--format", "csv");
    expect(out.split("\r\n").slice(1, -1)).toEqual([
      "a,2026-01-31,5,0,1,0,0,1000,0,0",
      "b,2026-01-31,5,0,1,0,0,1000,0,0",
    ]);
  });

  test("count heard speech apart from requests, and keep unknown fields out", async () => {
    const heard = { type: "heard", chars_heard: 7, heard_ms: 500, chars_billed: 99, secret: "x" };
    const { out } = await usage(ledger("a", request(heard), request()), "--format", "jsonl");
    expect(JSON.parse(out)).toEqual({
      tenant: "acme",
      key: "app",
      characters: 5,
      characters_counted: 0,
      requests: 1,
      requests_unknown: 0,
      requests_cached: 0,
      audio_ms: 1000,
      characters_heard: 7,
      heard_ms: 500,
    });
  });

  test("names of clients reach neither the terminal nor a spreadsheet as commands", async () => {
    const path = ledger("a", request({ voice: '=1+1,"\u001b[31m' }));
    expect((await usage(path, "--by", "voice")).out).not.toContain("\u001b");
    expect((await usage(path, "--by", "voice", "--format", "csv")).out).toContain('"\'=1+1,""');
  });
});

describe("what is no ledger", () => {
  test("damaged lines are passed over and said; a line that was written again counts once", async () => {
    const whole = request();
    const path = ledger(
      "a",
      whole,
      "\n",
      whole,
      '{"v":1,"id',
      "\n",
      request({ chars_billed: -3 }),
      request().slice(0, -9),
    );
    const { code, out, err } = await usage(path, "--by", "tenant");
    expect([code, err]).toEqual([0, `voicewire: ${path}: 3 damaged lines were passed over\n`]);
    expect(out).toMatch(/\nacme +5 /);
  });

  test("a ledger of another version is refused", async () => {
    expect(await usage(ledger("a", request({ v: 2 })))).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("The ledger is of version 2, expected 1"),
    });
  });

  test("no file, a missing one and a folder are refused", async () => {
    expect(await usage()).toMatchObject({ code: 2, err: expect.stringContaining("usage FILE") });
    expect(await usage(folder.file("none"))).toMatchObject({
      code: 2,
      err: expect.stringContaining("ENOENT"),
    });
    mkdirSync(folder.file("folder"));
    expect(await usage(folder.file("folder"))).toMatchObject({
      code: 2,
      err: expect.stringContaining("EISDIR"),
    });
  });

  test.each([
    [["--by", "colour"], "expected tenant, key"],
    [["--format", "xml"], "expected table, csv"],
    [["--hour", "open"], "expected closed"],
    [["--from", "yesterday"], "expected a time such as"],
    [["--hour", "closed", "--from", "2026-01-31T12:10:00Z"], "expected a whole hour"],
  ])("%s is refused", async (argv, why) => {
    expect(await usage(ledger("a", request()), ...argv)).toMatchObject({
      code: 2,
      err: expect.stringContaining(why),
    });
  });
});

describe("export", () => {
  test("of an hour has the same ids each time; of another hour, tenant, node or meter others", async () => {
    const lines = [
      request(),
      request({ tenant: "lab" }),
      request({ node: "b" }),
      request({ at: "2026-01-31T13:00:00Z" }),
    ];
    const first = ledger("a", ...lines);
    const later = ledger("b", ...lines.reverse());
    const ids = async (...argv: string[]) => {
      const { out } = await usage(...argv, "--hour", "closed", "--format", "jsonl");
      return out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).id);
    };
    const before = await ids(first);
    expect(new Set(before).size).toBe(4);
    expect(await ids(later)).toEqual(before);
    expect(before[0]).toMatch(/^vw_[\w-]{43}$/);
    const other = await ids(first, "--meter", "seconds");
    expect(before.filter((id) => other.includes(id))).toEqual([]);
  });

  test("leaves out the hour that is not over", async () => {
    const path = ledger("a", request({ at: new Date().toISOString() }));
    expect(await usage(path, "--format", "cloudevents")).toEqual({ code: 0, out: "", err: "" });
    expect((await usage(path)).out).toContain("acme");
  });

  test("is a meter event of Stripe for each tenant and hour", async () => {
    const path = ledger("a", request(), request({ tenant: "" }), request({ chars_billed: 0, tenant: "lab" }));
    const { out, err } = await usage(path, "--format", "stripe", "--meter", "speech");
    expect(JSON.parse(out)).toEqual({
      event_name: "speech",
      identifier: expect.stringMatching(/^vw_/),
      timestamp: Date.parse("2026-01-31T12:00:00Z") / 1000,
      payload: { stripe_customer_id: "acme", value: "5" },
    });
    expect(err).toBe("voicewire: 2 rows without a tenant or characters were left out\n");
  });

  test("is a CloudEvent for each tenant, hour and node", async () => {
    const { out } = await usage(ledger("a", request()), "--format", "cloudevents");
    expect(JSON.parse(out)).toMatchObject({
      specversion: "1.0",
      type: "com.voicewire.usage.v1",
      source: "/voicewire/a",
      id: expect.stringMatching(/^vw_/),
      time: "2026-01-31T12:00:00Z",
      subject: "acme",
      datacontenttype: "application/json",
      data: { meter: "voicewire_characters", tenant: "acme", characters: 5, requests: 1 },
    });
  });
});
