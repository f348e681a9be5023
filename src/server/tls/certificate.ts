/** A certificate and its key, read from PEM files and checked before anything is done with them. */
import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { GatewayError } from "../../errors.ts";
import { modeForOthers } from "../../kit/private-file.ts";

/** The settings `tls-cert` and `tls-key`. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Certificate {
  /** Names and addresses that it is good for. */
  readonly names: readonly string[];
  /** Unix milliseconds. */
  readonly beginMs: number;
  readonly endMs: number;
  /** Digest of both files' bytes: another digest, another pair. */
  readonly digest: string;
  /** Mode of the key's file, in octal, where others may read it; null: only its owner may. */
  readonly modeForOthers: string | null;
}

/** An operator has so long to do something about it. */
const WARN_BEFORE_MS = 14 * 86_400_000;

/** null: no TLS. Throws invalid_config where one of them is missing. */
export function certificateFiles(settings: {
  readonly tlsCert: string;
  readonly tlsKey: string;
  readonly proxyProtocol: boolean;
}): CertificateFiles | null {
  const { tlsCert: certFile, tlsKey: keyFile, proxyProtocol } = settings;
  if (certFile === "" && keyFile === "") return null;
  if (certFile === "") throw unusable("tls-cert", "not set, expected the file of the key in tls-key");
  if (keyFile === "") throw unusable("tls-key", "not set, expected the file of the certificate in tls-cert");
  if (proxyProtocol) {
    throw new GatewayError(
      "invalid_config",
      "Setting proxy-protocol: set together with tls-cert, but a proxy sends its header in front of TLS, where it is not " +
        "read; expected one of them alone",
      { field: "proxy-protocol" },
    );
  }
  return { certFile, keyFile };
}

/** Throws invalid_config, which names the setting. */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const certPem = read("tls-cert", certFile);
  const keyPem = read("tls-key", keyFile);
  const certificate = parse("tls-cert", certFile, () => new X509Certificate(certPem));
  if (keyPem.includes("ENCRYPTED")) {
    throw unusable("tls-key", `"${keyFile}" has a passphrase, expected a key without one`);
  }
  const key = parse("tls-key", keyFile, () => createPrivateKey(keyPem));
  if (!certificate.checkPrivateKey(key)) {
    throw unusable("tls-key", `"${keyFile}" is another certificate's key, expected that of "${certFile}"`);
  }
  return {
    names: namesOf(certificate),
    beginMs: Date.parse(certificate.validFrom),
    endMs: Date.parse(certificate.validTo),
    digest: createHash("sha256").update(certPem).update("\0").update(keyPem).digest("hex"),
    modeForOthers: modeForOthers(keyFile),
  };
}

/** In words why clients will not take it, or soon will not; null: they will. */
export function certificateFault({ beginMs, endMs }: Certificate, nowMs: number): string | null {
  if (nowMs < beginMs) return `it begins on ${dayOf(beginMs)}`;
  if (nowMs >= endMs) return `it ended on ${dayOf(endMs)}`;
  if (endMs - nowMs <= WARN_BEFORE_MS) return `it ends on ${dayOf(endMs)}`;
  return null;
}

/** Whether clients take it now. */
export function isValid({ beginMs, endMs }: Certificate, nowMs: number): boolean {
  return nowMs >= beginMs && nowMs < endMs;
}

/** Its names, and the day of its end. */
export function describeCertificate({ names, endMs }: Certificate): string {
  return `${names.join(", ")} until ${dayOf(endMs)}`;
}

/** As `2027-01-31`. */
export function dayOf(unixMs: number): string {
  return new Date(unixMs).toISOString().slice(0, 10);
}

function read(field: string, file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch (cause) {
    throw unusable(field, `"${file}" can't be read: ${reasonOf(cause)}`, cause);
  }
}

function parse<T>(field: string, file: string, parsed: () => T): T {
  try {
    return parsed();
  } catch (cause) {
    throw unusable(field, `"${file}" is no PEM file that can be used: ${reasonOf(cause)}`, cause);
  }
}

/** The names of RFC 6125, or the common name of certificates that have none. */
function namesOf({ subjectAltName = "", subject }: X509Certificate): string[] {
  const names = subjectAltName
    .split(", ")
    .flatMap((entry) => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1] ?? []);
  const common = /^CN=(.+)$/m.exec(subject)?.[1];
  return names.length === 0 && common !== undefined ? [common] : names;
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function unusable(field: string, what: string, cause?: unknown): GatewayError {
  return new GatewayError("invalid_config", `Setting ${field}: ${what}`, { field, cause });
}
