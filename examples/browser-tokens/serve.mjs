// Your own app's server: it knows who is logged in, and gives browsers short tokens for what they may do.
//   voicewire keys new web --signs                                  # prints the secret, once
//   voicewire serve --keys-file keys.json
//   VOICEWIRE_SIGNING_SECRET=... node examples/browser-tokens/serve.mjs
import { createHmac, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { PAGE_HEADERS } from "../lib/page-headers.mjs";

/** Of the key file: the id of the signing key, and what it signs with. */
const keyId = process.env.VOICEWIRE_SIGNING_ID ?? "web";
const secret = Buffer.from(process.env.VOICEWIRE_SIGNING_SECRET ?? "", "base64url");
const gateway = process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080";
/** For a connection to be opened; the client package asks for another one before it ends. */
const TOKEN_SECONDS = 60;

/** Your own login stands here: whoever is not logged in gets no token. */
function userOf(_request) {
  return "ann";
}

function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** A JWT (RFC 7519): ann may speak and listen in her own session, from this page. */
function tokenFor(user, origin) {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    aud: "voicewire",
    sub: user,
    iat: now,
    exp: now + TOKEN_SECONDS,
    jti: randomUUID(),
    vw: {
      sessions: [`app-${user}`],
      allow: ["open", "speak", "listen", "interrupt"],
      characters: 5000,
      origin: [origin],
    },
  };
  const signed = `${encode({ alg: "HS256", typ: "JWT", kid: keyId })}.${encode(claims)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

/** The page's files, and the client package as it is installed. */
async function fileOf(pathname) {
  const types = { html: "text/html; charset=utf-8", mjs: "text/javascript", js: "text/javascript" };
  const [, folder, name] = /^\/(client\/)?([a-z-]+\.(?:html|m?js))$/.exec(pathname) ?? [];
  const isPage = folder === undefined && ["index.html", "page.mjs"].includes(name);
  if (!isPage && folder === undefined) return null;
  const url = new URL(name, isPage ? import.meta.url : import.meta.resolve("voicewire/client"));
  const body = await readFile(url).catch(() => null);
  return body === null ? null : { type: types[name.split(".").at(-1)], body };
}

async function answer(request) {
  const { pathname } = new URL(request.url ?? "/", "http://page");
  if (request.method === "POST" && pathname === "/voice-token") {
    const user = userOf(request);
    const isOwnPage = request.headers["sec-fetch-site"] === "same-origin";
    if (user === null || !isOwnPage) return { status: 403, type: "application/json", body: "{}" };
    const token = tokenFor(user, `http://${request.headers.host}`);
    const body = JSON.stringify({ token, session: `app-${user}`, gateway });
    return { status: 200, type: "application/json", body };
  }
  const file = request.method === "GET" ? await fileOf(pathname === "/" ? "/index.html" : pathname) : null;
  return file === null ? { status: 404, type: "text/plain", body: "" } : { status: 200, ...file };
}

if (secret.length < 32) {
  console.error("Set VOICEWIRE_SIGNING_SECRET to what `voicewire keys new web --signs` prints.");
  process.exit(2);
}
const server = createServer(async (request, response) => {
  const { status, type, body } = await answer(request);
  response.writeHead(status, { ...PAGE_HEADERS, "cache-control": "no-store", "content-type": type });
  response.end(body);
});
server.listen(Number(process.env.PORT ?? 8072), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
