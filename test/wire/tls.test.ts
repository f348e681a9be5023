/** The public port over TLS: what it speaks, what it shows, and how the certificate is replaced while it runs. */
import { once } from "node:events";
import { chmodSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Config } from "../../src/config.ts";
import { CertificateFolder, PAIRS, shownName } from "../helpers/certificate-files.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { trustTestCertificate } from "../helpers/test-certificate.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";

/** Behind the other tests of replaced files, which sign at the same time. */
const RENEWS = { deadlineMs: 15_000 };

let upstream: FakeUpstream;
let trust: Disposable;
beforeAll(async () => {
  trust = trustTestCertificate();
  upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
});
afterAll(async () => {
  await upstream.close();
  trust[Symbol.dispose]();
});

interface SecureGateway extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly files: CertificateFolder;
  /** What the log was given at the level of errors. */
  readonly errors: string[];
  readonly warnings: string[];
}

async function secureGateway(
  settings: Partial<Config> = {},
  { keyMode = 0o600 }: { readonly keyMode?: number } = {},
): Promise<SecureGateway> {
  const files = new CertificateFolder();
  chmodSync(files.settings.tlsKey, keyMode);
  const errors: string[] = [];
  const warnings: string[] = [];
  const log = {
    ...watchedLog,
    warn: (fields: object, message: string) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
    error: (fields: object, message: string) => void errors.push(`${message} ${JSON.stringify(fields)}`),
  };
  const started = gatewayAt(upstream.url, { trimMs: 0, ...files.settings, ...settings }, { log });
  const gateway = await started.catch((thrown: unknown) => {
    files[Symbol.dispose]();
    throw thrown;
  });
  return {
    gateway,
    files,
    errors,
    warnings,
    [Symbol.asyncDispose]: async () => {
      await gateway.close();
      files[Symbol.dispose]();
    },
  };
}

async function hstsOf(
  url: string,
  { host, path = "/healthz" }: { host: string; path?: string },
): Promise<unknown> {
  const sent = request(new URL(path, url), { headers: { host }, agent: false }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  return answer.headers["strict-transport-security"];
}

describe("the port over TLS", () => {
  it("speaks wss and https, and nothing to a client without TLS", async () => {
    await using secure = await secureGateway();
    const { gateway } = secure;
    expect(gateway.url).toMatch(/^https:/);
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_16000");
    client.send({ type: "speak", text: "Hello." });
    await client.next("utterance.done");
    expect(client.frames.length).toBeGreaterThan(0);
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    const plain = connect(gateway.port, "127.0.0.1");
    let got = "";
    plain.on("data", (data: Buffer) => {
      got += data.toString("latin1");
    });
    plain.on("error", () => undefined);
    plain.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(plain, "close");
    expect(got).not.toContain("HTTP/1.1");
  });

  it("has the operations port as it was, with the certificate's end", async () => {
    await using secure = await secureGateway();
    expect(secure.gateway.opsUrl).toMatch(/^http:/);
    const metrics = await (await fetch(`${secure.gateway.opsUrl}/metrics`)).text();
    expect(metrics).toContain(
      `voicewire_tls_certificate_end_seconds ${Date.parse("2126-10-29T12:20:11Z") / 1000}`,
    );
  });

  it("lets nobody share its port, and leaves it when it closes", async () => {
    const first = await secureGateway();
    const { port } = first.gateway;
    await expect(secureGateway({ port })).rejects.toMatchObject({ code: "port_in_use" });
    await first[Symbol.asyncDispose]();
    const plain = await gatewayAt(upstream.url, { port });
    await plain.close();
  });

  it("a certificate without its key, or with another's, stops the start", async () => {
    using files = new CertificateFolder();
    const { tlsCert, tlsKey } = files.settings;
    await expect(gatewayAt(upstream.url, { tlsCert })).rejects.toMatchObject({
      code: "invalid_config",
      field: "tls-key",
    });
    files.put({ key: PAIRS.renewed.key });
    await expect(gatewayAt(upstream.url, { tlsCert, tlsKey })).rejects.toMatchObject({
      code: "invalid_config",
      field: "tls-key",
    });
  });
});

describe("HSTS", () => {
  it("is on every kind of answer under a name, and on none under a loopback address or without TLS", async () => {
    const settings = { allowedHosts: "voice.example.com" };
    await using secure = await secureGateway(settings);
    const { url } = secure.gateway;
    const host = "voice.example.com";
    for (const path of ["/healthz", "/nowhere", "/v1/voices", "/live/nobody/captions.vtt"]) {
      expect(await hstsOf(url, { host, path }), path).toBe("max-age=31536000");
    }
    // Refused before any route.
    expect(await hstsOf(url, { host: "evil.example" })).toBe("max-age=31536000");
    for (const own of ["localhost", "127.0.0.1:8443", "[::1]"])
      expect(await hstsOf(url, { host: own })).toBe(undefined);
    await using plain = await gatewayAt(upstream.url, settings);
    const answer = await fetch(`${plain.url}/healthz`);
    expect(answer.headers.get("strict-transport-security")).toBe(null);
  });

  it("says how long, or nothing with 0", async () => {
    for (const [hstsSeconds, expected] of [
      [60, "max-age=60"],
      [0, undefined],
    ] as const) {
      await using secure = await secureGateway({ hstsSeconds, allowedHosts: "voice.example.com" });
      expect(await hstsOf(secure.gateway.url, { host: "voice.example.com" })).toBe(expected);
    }
  });
});

describe.concurrent("replaced files", () => {
  it("are shown to new connections, with and without SNI, again and again", async () => {
    await using secure = await secureGateway();
    const { gateway, files } = secure;
    expect(await shownName(gateway.port)).toBe("localhost");
    for (const [count, name, pair] of [
      [1, "renewed.example", PAIRS.renewed],
      [2, "localhost", PAIRS.first],
      [3, "renewed.example", PAIRS.renewed],
    ] as const) {
      files.put(pair);
      await until("the renewal", () => gateway.counters.tlsRenewals === count, RENEWS);
      expect(await shownName(gateway.port)).toBe(name);
      expect(await shownName(gateway.port, "renewed.example")).toBe(name);
      expect(await shownName(gateway.port, "unknown.example")).toBe(name);
      // All routes are there.
      await using client = await TestClient.connect(gateway, "/live/s?format=none");
      await client.next("hello");
      expect((await fetch(`${gateway.url}/v1/voices`)).status).toBe(200);
    }
    expect(gateway.certificate()?.names).toEqual(["localhost", "renewed.example", "127.0.0.1"]);
    expect(secure.errors).toEqual([]);
  });

  it("have a warning in the log while others may read the key", async () => {
    await using secure = await secureGateway({}, { keyMode: 0o640 });
    const { gateway, files } = secure;
    const warnings = () => secure.warnings.filter((line) => line.startsWith("Others may read"));
    const warning = 'Others may read the key of the certificate: chmod 600 {"mode":"640"}';
    expect(warnings()).toEqual([warning]);
    files.put(PAIRS.renewed);
    await until("the renewal", () => gateway.counters.tlsRenewals === 1, RENEWS);
    expect(warnings()).toEqual([warning]);
  });

  it("that do not belong together leave the old ones until they do", async () => {
    await using secure = await secureGateway();
    const { gateway, files, errors } = secure;
    files.put({ certificate: PAIRS.renewed.certificate });
    await until("the refusal", () => gateway.counters.tlsRenewalsRefused === 1, RENEWS);
    expect(errors).toEqual([expect.stringContaining("the old one stays")]);
    expect(errors[0]).toContain("another certificate's key");
    expect(await shownName(gateway.port)).toBe("localhost");
    files.put({ key: PAIRS.renewed.key });
    await until("the renewal", () => gateway.counters.tlsRenewals === 1, RENEWS);
    expect(await shownName(gateway.port)).toBe("renewed.example");
  });

  it.each([
    ["that are over", PAIRS.expired, "ended on 2021-01-01"],
    ["that are no PEM", { certificate: "nonsense" }, "no PEM file"],
    [
      "that are cut off behind the first certificate",
      { ...PAIRS.renewed, certificate: `${PAIRS.renewed.certificate}-----BEGIN CERTIFICATE-----\nMIIB` },
      "takes no certificate",
    ],
  ])("%s leave the old ones", async (_name, pair, detail) => {
    await using secure = await secureGateway();
    const { gateway, files, errors } = secure;
    files.put(pair);
    await until("the refusal", () => gateway.counters.tlsRenewalsRefused === 1, RENEWS);
    expect(errors.join()).toContain(detail);
    expect(errors.join()).not.toContain("PRIVATE KEY");
    expect(await shownName(gateway.port)).toBe("localhost");
    expect(gateway.counters.tlsRenewals).toBe(0);
  });
});

it("20 sessions lose no frame while the certificate is replaced, nor does one that begins meanwhile", async () => {
  await using secure = await secureGateway();
  const { gateway, files } = secure;
  // 3 s of sound: the files are read again in a fraction of it.
  const text = "a".repeat(150);
  const join = (id: string) => TestClient.connect(gateway, `/live/${id}?format=pcm_16000`);
  const alone = await join("alone");
  const clients = await Promise.all(Array.from({ length: 20 }, (_, index) => join(`s${index}`)));
  // All are there before any speaks: on a busy machine the handshakes take as long as the speech.
  for (const client of [alone, ...clients]) client.send({ type: "speak", text });
  await until("every session to speak", () => clients.every((client) => client.frames.length > 10), RENEWS);
  const before = clients.map((client) => client.frames.length);
  files.put(PAIRS.renewed);
  await until("the renewal", () => gateway.counters.tlsRenewals === 1, RENEWS);
  const later = await join("later");
  later.send({ type: "speak", text });
  await Promise.all([alone, later, ...clients].map((client) => client.next("utterance.done")));
  for (const [index, client] of clients.entries()) {
    expect(client.frames.length).toBeGreaterThan(before[index] ?? 0);
    expect(client.audio.equals(alone.audio)).toBe(true);
    expect(client.eventsOf("gap")).toEqual([]);
    expect(client.closed).toBe(null);
  }
  expect(later.audio.equals(alone.audio)).toBe(true);
  expect(await shownName(gateway.port)).toBe("renewed.example");
  for (const client of [alone, later, ...clients]) await client[Symbol.asyncDispose]();
});
