/** What is read of a certificate and its key, and when it is worth a warning: src/server/tls/certificate.ts. */
import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  certificateFault,
  certificateFiles,
  isValid,
  readCertificate,
} from "../../../src/server/tls/certificate.ts";
import { CertificateFolder, PAIRS } from "../../helpers/certificate-files.ts";

function read(folder: CertificateFolder): ReturnType<typeof readCertificate> {
  return readCertificate({ certFile: folder.settings.tlsCert, keyFile: folder.settings.tlsKey });
}

const DAY_MS = 86_400_000;

describe("a certificate", () => {
  it("is read with its names and its end", () => {
    using renewed = new CertificateFolder(PAIRS.renewed);
    expect(read(renewed)).toMatchObject({
      names: ["localhost", "renewed.example", "127.0.0.1"],
      beginMs: Date.parse("2020-01-01"),
      endMs: Date.parse("2126-01-01"),
    });
    using commonName = new CertificateFolder(PAIRS.first);
    expect(read(commonName).names).toEqual(["localhost"]);
  });

  it("is worth a warning from 14 days before its end on, and before its beginning", () => {
    using folder = new CertificateFolder(PAIRS.renewed);
    const certificate = read(folder);
    const { beginMs, endMs } = certificate;
    const rows = [
      [beginMs - 1, "it begins on 2020-01-01", false],
      [beginMs, null, true],
      [endMs - 14 * DAY_MS - 1, null, true],
      [endMs - 14 * DAY_MS, "it ends on 2126-01-01", true],
      [endMs - 1, "it ends on 2126-01-01", true],
      [endMs, "it ended on 2126-01-01", false],
    ] as const;
    for (const [nowMs, fault, valid] of rows) {
      expect(certificateFault(certificate, nowMs)).toBe(fault);
      expect(isValid(certificate, nowMs)).toBe(valid);
    }
  });

  it("and its key are another pair with another key", () => {
    using folder = new CertificateFolder();
    const { digest } = read(folder);
    writeFileSync(folder.settings.tlsKey, `${PAIRS.first.key}\n`);
    expect(read(folder).digest).not.toBe(digest);
  });
});

describe("files that can't be used are named with the reason, and nothing of a key is repeated", () => {
  it.each([
    ["tls-key", { key: PAIRS.renewed.key }, /another certificate's key/],
    ["tls-key", { key: PAIRS.first.key.replaceAll("PRIVATE", "ENCRYPTED PRIVATE") }, /has a passphrase/],
    ["tls-key", { key: PAIRS.first.certificate }, /no PEM file/],
    ["tls-cert", { certificate: PAIRS.first.key }, /no PEM file/],
    ["tls-cert", { certificate: "" }, /no PEM file/],
  ])("%s %#", (field, pair, message) => {
    using folder = new CertificateFolder();
    folder.put(pair);
    const thrown = caught(() => read(folder));
    expect(thrown).toMatchObject({ code: "invalid_config", field });
    expect(thrown.message).toMatch(message);
    expect(thrown.message).not.toContain("MIG");
  });

  it("a file that is missing", () => {
    const files = { certFile: "/nowhere/cert.pem", keyFile: "/nowhere/key.pem" };
    expect(caught(() => readCertificate(files)).message).toMatch(/nowhere\/cert.pem" can't be read: ENOENT/);
  });
});

describe("certificateFiles", () => {
  it.each([
    ["tls-key", { tlsCert: "c", tlsKey: "", proxyProtocol: false }],
    ["tls-cert", { tlsCert: "", tlsKey: "k", proxyProtocol: false }],
    ["proxy-protocol", { tlsCert: "c", tlsKey: "k", proxyProtocol: true }],
  ])("refuses by %s what does not go together", (field, settings) => {
    expect(caught(() => certificateFiles(settings))).toMatchObject({ code: "invalid_config", field });
  });

  it("none: no TLS", () => {
    expect(certificateFiles({ tlsCert: "", tlsKey: "", proxyProtocol: true })).toBe(null);
  });
});

function caught(action: () => unknown): Error {
  try {
    action();
  } catch (thrown) {
    if (thrown instanceof Error) return thrown;
  }
  throw new Error("Nothing was thrown");
}
