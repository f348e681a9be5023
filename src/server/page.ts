/** The page's files, read once at start and served from memory. */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { Answer } from "./http.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".map": "application/json",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/**
 * Scripts, styles and sockets from here only (`'self'` is ws: and wss: of the same host, too); WebAssembly for the decoder that
 * stands in for WebCodecs.
 */
const SCRIPTS = "'self' 'wasm-unsafe-eval'";

function securityPolicy(scripts: string): string {
  return [
    "default-src 'none'",
    `script-src ${scripts}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** What the page never asks for; it plays sound, and nothing else. */
const PERMISSIONS_POLICY = ["camera", "display-capture", "geolocation", "microphone", "payment", "usb"]
  .map((feature) => `${feature}=()`)
  .join(", ");

interface PagePlace {
  /** The path of index.html, below which the other files are; default: the root. */
  readonly at?: string;
  /** What may run, as a source list of the content security policy. */
  readonly scripts?: string;
}

/** Path -> answer. An empty map when the folder has not been built. */
export function loadPage(
  folder: string,
  { at = "", scripts = SCRIPTS }: PagePlace = {},
): ReadonlyMap<string, Answer> {
  const answers = new Map<string, Answer>();
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return answers;
    throw thrown;
  }
  for (const name of names) {
    const contentType = TYPES[extname(name)];
    if (contentType === undefined) continue;
    const answer = {
      status: 200,
      contentType,
      body: readFileSync(join(folder, name)),
      headers: {
        "content-security-policy": securityPolicy(scripts),
        "permissions-policy": PERMISSIONS_POLICY,
        "cache-control": "no-cache",
      },
    };
    answers.set(`${at}/${name}`, answer);
    if (name === "index.html") answers.set(at === "" ? "/" : at, answer);
  }
  return answers;
}
