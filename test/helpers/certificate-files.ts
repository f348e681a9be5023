/** A certificate and its key in files of their own, which a test replaces while a gateway runs; and what a server shows. */
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import {
  EXPIRED_CERTIFICATE,
  EXPIRED_KEY,
  RENEWED_CERTIFICATE,
  RENEWED_KEY,
  TEST_CERTIFICATE,
  TEST_KEY,
} from "./test-certificate.ts";

export interface Pair {
  readonly certificate: string;
  readonly key: string;
}

export const PAIRS = {
  first: { certificate: TEST_CERTIFICATE, key: TEST_KEY },
  renewed: { certificate: RENEWED_CERTIFICATE, key: RENEWED_KEY },
  expired: { certificate: EXPIRED_CERTIFICATE, key: EXPIRED_KEY },
} as const satisfies Record<string, Pair>;

export class CertificateFolder implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "voicewire-tls-"));
  /** Settings of a gateway that has them. */
  readonly settings = {
    tlsCert: join(this.#folder, "fullchain.pem"),
    tlsKey: join(this.#folder, "privkey.pem"),
  };

  constructor(pair: Pair = PAIRS.first) {
    this.put(pair);
  }

  /** As the programs that renew certificates do: one after the other, each whole at once. */
  put({ certificate, key }: Partial<Pair>): void {
    if (certificate !== undefined) replace(this.settings.tlsCert, certificate);
    if (key !== undefined) replace(this.settings.tlsKey, key);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Common name of the certificate that a new connection gets; `servername`: the name that it asks for (SNI). */
export async function shownName(port: number, servername?: string): Promise<string> {
  const socket = connect({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ...(servername === undefined ? {} : { servername }),
  });
  await once(socket, "secureConnect");
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}
