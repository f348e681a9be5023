/** `voicewire keys` and `voicewire token`: what they write, what a gateway makes of it, and what connects with it. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Access } from "../../../src/access/access.ts";
import { readKeys } from "../../../src/access/keys.ts";
import { runCli } from "../../../src/cli/commands.ts";
import { temporaryFolder } from "../../cli/program.ts";
import { type FakeUpstream, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { gatewayAt, type TestGateway } from "../../helpers/start-gateway.ts";
import { memoryIo } from "./memory-io.ts";

let folder: ReturnType<typeof temporaryFolder>;
let file: string;

beforeEach(() => {
  folder = temporaryFolder();
  file = folder.file("keys.json");
  return () => folder[Symbol.dispose]();
});

async function run(argv: readonly string[], env: Record<string, string> = {}) {
  const io = memoryIo(argv, { env });
  const code = await runCli(io);
  return { code, out: io.stdout.text, err: io.stderr.text };
}

const keys = (...argv: string[]) => run(["keys", ...argv, "--file", file]);
const token = (...argv: string[]) => run(["token", ...argv, "--file", file]);
const content = () => JSON.parse(readFileSync(file, "utf8"));

function claimsOf(jwt: string) {
  return JSON.parse(Buffer.from(jwt.trim().split(".")[1] ?? "", "base64url").toString());
}

describe("keys new", () => {
  test("makes the file for its owner alone, with a signing key, and shows the key once", async () => {
    const { code, out, err } = await keys("new", "app");
    expect(code).toBe(0);
    expect(out).toMatch(/^vwk_app_[\w-]{43}\n$/);
    expect(err).toContain("--keys-file");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const text = readFileSync(file, "utf8");
    expect(text).not.toContain(out.trim());
    expect(content().keys).toEqual([
      { id: "gateway", algorithm: "HS256", secret: expect.stringMatching(/^[\w-]{43}$/), mints: true },
      { id: "app", hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
    ]);
    expect(err + (await keys("list")).out).not.toContain(content().keys[0].secret);
  });

  test("adds to a file, narrows, and leaves all else in it as it was", async () => {
    await keys("new", "app");
    writeFileSync(file, JSON.stringify({ $schema: "s", ...content(), revoked: { tokens: ["t"] } }));
    const before = content();
    const argv = [
      "--tenant",
      "acme",
      "--allow",
      "listen,captions",
      "--sessions",
      "lobby-*",
      "--expires",
      "90d",
    ];
    expect((await keys("new", "kiosk", ...argv)).code).toBe(0);
    const { keys: after, ...rest } = content();
    expect({ keys: after.slice(0, 2), ...rest }).toEqual(before);
    expect(after[2]).toMatchObject({
      tenant: "acme",
      grants: { sessions: ["lobby-*"], allow: ["listen", "captions"] },
    });
    expect(Date.parse(after[2].expires) - Date.now()).toBeGreaterThan(89 * 86_400_000);
  });

  test("--signs makes a key for a server that signs tokens itself", async () => {
    await keys("new", "app");
    const { out } = await keys("new", "web", "--signs");
    expect(content().keys[2]).toEqual({ id: "web", algorithm: "HS256", secret: out.trim() });
  });

  test.each([
    [["new"], "one id"],
    [["new", "a", "b"], "one id"],
    [["new", "a b"], "expected 1 to 64"],
    [["new", "gateway"], "two keys have the id gateway"],
    [["new", "app", "--allow", "lisen"], 'did you mean "listen"'],
    [["new", "app", "--sessions", "a b"], "expected a name"],
    [["new", "app", "--expires", "yesterday"], "--expires"],
    [["new", "app", "--expires", "2020-01-01"], "--expires"],
    [["remove", "nobody"], "keys new"],
    [["list"], "keys new"],
    [["revoke", "--subject", "ann"], "keys new"],
    [["revoke"], "one of --token"],
    [["revoke", "--token", '{"audit": "refused"}'], "as the audit log has it"],
    [["remove", "app", "--expires", "yesterday"], "a time to come"],
    [["lst"], 'did you mean "list"'],
    [[], "expected one of new"],
  ])("%j is a mistake that is named, and no file is made", async (argv, message) => {
    const { code, err } = await keys(...argv);
    expect(err).toContain(message);
    expect(code).toBe(2);
    expect(existsSync(file)).toBe(false);
    expect(existsSync(`${file}.new`)).toBe(false);
  });

  test("leaves a file that is broken as it is, and waits for no other writer", async () => {
    writeFileSync(file, '{"keys":[{"id":"x"}]}');
    expect((await keys("new", "app")).err).toContain("keys.0");
    expect(readFileSync(file, "utf8")).toBe('{"keys":[{"id":"x"}]}');
    writeFileSync(`${file}.new`, "");
    expect((await keys("new", "app")).err).toContain("is another command at work");
    expect(existsSync(`${file}.new`)).toBe(true);
  });
});

describe("keys list, remove, revoke, schema", () => {
  test("list says who may do what", async () => {
    await keys("new", "app");
    await keys("new", "kiosk", "--allow", "listen", "--sessions", "lobby-*", "--expires", "2099-01-31");
    await keys("revoke", "--token", "t1");
    expect((await keys("list")).out.replaceAll(/ +/g, " ")).toBe(
      "ID KIND TENANT ALLOWS SESSIONS EXPIRES\n" +
        "gateway signs HS256, mints - all but admin * never\n" +
        "app static - all but admin * never\n" +
        "kiosk static - listen lobby-* 2099-01-31T00:00:00.000Z\n" +
        "Withdrawn: 1 tokens, 0 subjects\n",
    );
  });

  test("remove takes a key out; for an unknown id it names the nearest", async () => {
    await keys("new", "app");
    expect((await keys("remove", "ap")).err).toContain('did you mean "app"');
    expect((await keys("remove", "app")).code).toBe(0);
    expect(content().keys.map(({ id }: { id: string }) => id)).toEqual(["gateway"]);
  });

  test("remove with a time leaves it until then", async () => {
    await keys("new", "app");
    expect((await keys("remove", "app", "--expires", "30m")).err).toContain("app ends at");
    const { id, expires } = content().keys[1];
    expect(id).toBe("app");
    expect(Date.parse(expires)).toBeGreaterThan(Date.now());
    expect((await keys("remove", "ap", "--expires", "30m")).err).toContain('did you mean "app"');
  });

  test("revoke takes a subject's tokens of this very second", async () => {
    await keys("new", "app");
    const { iat } = claimsOf((await token("--sessions", "s", "--allow", "listen", "--for", "ann")).out);
    await keys("revoke", "--subject", "ann");
    expect(content().revoked.subjects.ann).toBeGreaterThan(iat);
  });

  test("schema is one that takes the file, and needs none", async () => {
    const { code, out } = await keys("schema");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ type: "object", required: ["keys"] });
    expect(out).toContain("public_key");
    expect(existsSync(file)).toBe(false);
  });
});

describe("token", () => {
  test("is signed by the file's own key, with what the flags say", async () => {
    await keys("new", "app");
    const argv = [
      "--sessions",
      "demo,lobby-*",
      "--allow",
      "listen",
      "--for",
      "ann",
      "--once",
      "--expires-in",
      "90",
    ];
    const claims = claimsOf((await token(...argv)).out);
    expect(claims).toMatchObject({
      iss: "gateway",
      sub: "ann",
      aud: "voicewire",
      vw: { sessions: ["demo", "lobby-*"], allow: ["listen"], once: true },
    });
    expect(claims.exp - claims.iat).toBeGreaterThanOrEqual(90);
    expect(claims.exp - claims.iat).toBeLessThanOrEqual(91);
  });

  test.each([
    [["--allow", "listen", "--for", "ann"], "--sessions"],
    [["--sessions", "s", "--for", "ann"], "--allow"],
    [["--sessions", "s", "--allow", "listen"], "--for"],
    [["--sessions", "s", "--allow", "all", "--for", "ann"], "--allow"],
    [["--sessions", "a b", "--allow", "listen", "--for", "ann"], "--sessions"],
    [["--sessions", "s", "--allow", "listen", "--for", "ann", "--expires-in", "90000"], "86400"],
  ])("%j is a mistake that is named", async (argv, message) => {
    await keys("new", "app");
    const { code, err } = await token(...argv);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });

  test("for admin it stands below a key that allows it, and without one it says how to make one", async () => {
    await keys("new", "app");
    await keys("new", "scraper", "--allow", "admin");
    const argv = ["--sessions", "*", "--allow", "admin,listen", "--for", "me"];
    const { code, err } = await token(...argv);
    expect([code, err]).toEqual([2, expect.stringContaining("gateway, which signs, lacks admin")]);
    expect(err).toContain("voicewire keys new operators --allow admin,listen");
    await keys("new", "operators", "--allow", "admin,listen");
    const { out } = await token(...argv);
    expect(claimsOf(out)).toMatchObject({ iss: "operators", vw: { allow: ["admin", "listen"] } });
    const ring = readKeys(readFileSync(file, "utf8"));
    const access = new Access({ keys: () => ring, nowMs: Date.now, takesTokensInUrl: false });
    const caller = access.identify({ credential: out.trim(), place: "header", origin: "" });
    expect(caller.may("admin", "any")).toBe(true);
  });

  test("says where no key of the file mints", async () => {
    await keys("new", "app");
    await keys("remove", "gateway");
    const { code, err } = await token("--sessions", "s", "--allow", "listen", "--for", "ann");
    expect([code, err]).toEqual([2, expect.stringContaining("no key of it mints")]);
  });
});

describe("commands that connect to a gateway with keys", () => {
  const own = temporaryFolder();
  const env = { VOICEWIRE_KEYS_FILE: own.file("keys.json") };
  let upstream: FakeUpstream;
  let gateway: TestGateway;
  let key: string;

  beforeAll(async () => {
    key = (await run(["keys", "new", "app"], env)).out.trim();
    upstream = await startFakeUpstream();
    gateway = await gatewayAt(upstream.url, { keysFile: env.VOICEWIRE_KEYS_FILE });
    return async () => {
      await gateway.close();
      await upstream[Symbol.asyncDispose]();
      own[Symbol.dispose]();
    };
  });

  const say = (environment: Record<string, string>, ...argv: string[]) =>
    run(["say", "--url", gateway.url, ...argv, "Hello."], environment);

  test("say takes the key from the environment or the flag, and a token too", async () => {
    const argv = ["token", "--sessions", "demo", "--allow", "open,speak,listen", "--for", "me"];
    const signed = (await run(argv, env)).out.trim();
    for (const result of [
      await say({ VOICEWIRE_KEY: key }),
      await say({}, "--key", key),
      await say({ VOICEWIRE_KEY: signed }, "--session", "demo", "--voice", "test-voice"),
    ]) {
      expect(result).toMatchObject({ code: 0, err: "" });
      expect(result.out).not.toContain("vwk_");
    }
  });

  const ask = (environment: Record<string, string>, ...flags: string[]) =>
    run(["token", "--url", gateway.url, "--sessions", "demo", "--for", "me", ...flags], environment);

  test("token --url asks the gateway with a key, and what it answers with opens it", async () => {
    const asked = await ask({ VOICEWIRE_KEY: key }, "--allow", "open,speak,listen", "--expires-in", "90");
    expect(asked).toMatchObject({ code: 0, err: "" });
    expect(claimsOf(asked.out)).toMatchObject({ iss: "app", sub: "me", vw: { sessions: ["demo"] } });
    const said = await say({ VOICEWIRE_KEY: asked.out.trim() }, "--session", "demo", "--voice", "test-voice");
    expect(said.code).toBe(0);
  });

  test("token --url says why the gateway gives none, without the key", async () => {
    const more = await ask({ VOICEWIRE_KEY: key }, "--allow", "admin");
    expect([more.code, more.err]).toEqual([4, expect.stringMatching(/The gateway at .*grants/)]);
    const wrong = `vwk_app_${"A".repeat(43)}`;
    const refused = await ask({ VOICEWIRE_KEY: wrong }, "--allow", "listen");
    expect([refused.code, refused.err]).toEqual([4, expect.stringContaining("does not take the key")]);
    expect(refused.err).not.toContain(wrong);
    for (const none of ["", "vwk_app_\nx"]) {
      const { code, err } = await ask({ VOICEWIRE_KEY: none }, "--allow", "listen");
      expect([code, err]).toEqual([2, expect.stringContaining("VOICEWIRE_KEY: not a key")]);
      expect(err).not.toContain("vwk_app_");
    }
    const twice = await ask({}, "--allow", "listen", "--file", "keys.json");
    expect([twice.code, twice.err]).toEqual([2, expect.stringContaining("--file")]);
    const argv = [
      "token",
      "--url",
      "http://127.0.0.1:9",
      "--sessions",
      "s",
      "--allow",
      "listen",
      "--for",
      "me",
    ];
    expect(await run(argv, { VOICEWIRE_KEY: key })).toMatchObject({
      code: 4,
      err: expect.stringContaining("No gateway answers"),
    });
  });

  test.each([
    ["none", 4, () => "", /asks for a key or a token.*VOICEWIRE_KEY/],
    ["another", 4, () => `vwk_app_${"A".repeat(43)}`, /does not take the key/],
    ["one with a line break", 1, () => "vwk_app_\nx", /./],
  ])("%s is refused in plain words, without the key", async (_name, exit, wrong, message) => {
    const { code, err } = await say({ VOICEWIRE_KEY: wrong() });
    expect(code).toBe(exit);
    expect(err).toMatch(message);
    expect(err).not.toContain("vwk_app_");
  });

  test("a token for another session, and what it does not allow, is said as the gateway says it", async () => {
    const argv = ["token", "--sessions", "quiet", "--allow", "listen", "--for", "me"];
    const signed = (await run(argv, env)).out.trim();
    const { code, err } = await say({ VOICEWIRE_KEY: signed }, "--session", "other");
    expect([code, err]).toEqual([4, expect.stringContaining("Your token is not for this session")]);
    expect((await run(["listen", "quiet", "--url", gateway.url], { VOICEWIRE_KEY: signed })).err).toContain(
      'No session "quiet"',
    );
  });
});

describe("doctor", () => {
  async function check(name: string, argv: readonly string[]) {
    const { out } = await run([
      "doctor",
      "--json",
      "--port",
      "0",
      "--upstream-url",
      "http://127.0.0.1:9",
      ...argv,
    ]);
    const { checks } = JSON.parse(out) as {
      checks: { name: string; status: string; detail: string; fix?: string }[];
    };
    return checks.find((candidate) => candidate.name === name);
  }

  test("looks at the key file: permissions, keys that end, no key that mints, and what is broken", async () => {
    await keys("new", "app");
    expect(await check("keys", ["--keys-file", file])).toMatchObject({
      status: "ok",
      detail: expect.stringContaining("2 keys"),
    });
    await keys("new", "kiosk", "--expires", "10d");
    await keys("remove", "gateway");
    chmodSync(file, 0o644);
    const worried = await check("keys", ["--keys-file", file]);
    expect(worried).toMatchObject({ status: "warn", fix: expect.stringContaining("chmod 600") });
    expect(worried?.detail).toMatch(/others may read it \(644\).*expire within 14 days: kiosk.*no key mints/);
    writeFileSync(file, "{");
    expect(await check("keys", ["--keys-file", file])).toMatchObject({ status: "fail" });
    expect(await check("server", ["--keys-file", file])).toMatchObject({ status: "ok" });
  });

  test("says what a stranger could do with and without keys", async () => {
    await keys("new", "app");
    const everywhere = ["--host", "0.0.0.0"];
    expect(await check("access", everywhere)).toMatchObject({
      status: "fail",
      fix: expect.stringContaining("--keys-file"),
    });
    expect(await check("access", [...everywhere, "--insecure"])).toMatchObject({ status: "warn" });
    expect(await check("access", [...everywhere, "--keys-file", file])).toMatchObject({
      status: "ok",
      detail: expect.stringContaining("who shows no key or token"),
    });
  });

  test("says with keys that Wyoming clients need none", async () => {
    await keys("new", "app");
    const flags = ["--keys-file", file, "--wyoming-allow", "192.168.1.0/24"];
    expect(await check("access", [...flags, "--wyoming-port", "10200"])).toMatchObject({
      detail: expect.stringMatching(/, but Wyoming clients of 192\.168\.1\.0\/24 may speak$/),
    });
    expect(await check("access", flags)).toMatchObject({ detail: expect.stringMatching(/, nothing else$/) });
  });

  test("says without keys who comes by the operations port, a proxy or a name", async () => {
    await keys("new", "app");
    expect(await check("access", ["--ops-host", "0.0.0.0"])).toMatchObject({
      status: "fail",
      detail: expect.stringContaining("may read what is said in every session"),
      fix: expect.stringContaining("operations port on 127.0.0.1"),
    });
    expect(await check("access", ["--trusted-proxies", "127.0.0.1"])).toMatchObject({
      status: "fail",
      detail: expect.stringMatching(/whoever reaches the reverse proxy at 127\.0\.0\.1 may listen/),
    });
    const named = [
      "--allowed-hosts",
      "voice.example.com,127.0.0.2",
      "--public-url",
      "wss://calls.example.com",
    ];
    expect(await check("access", named)).toMatchObject({
      status: "warn",
      detail: expect.stringMatching(/brings here as calls\.example\.com or voice\.example\.com$/),
      fix: expect.stringContaining("--keys-file"),
    });
    expect(await check("access", [...named, "--keys-file", file])).toMatchObject({ status: "ok" });
    expect(await check("access", [])).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/of this machine may use the gateway, nobody else$/),
    });
  });
});
