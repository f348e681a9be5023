/** Who may use the gateway: Host, Origin, keys and tokens; and the key of the built-in service. */

import type { HttpRequest } from "uWebSockets.js";
import { createHmac, createPrivateKey, createPublicKey } from "node:crypto";
import { Access, type Place, type Presented } from "../../../src/access/access.ts";
import type { Caller } from "../../../src/access/caller.ts";
import { clientAddress, readProxyTrust } from "../../../src/access/client-address.ts";
import { type Claims, signJwt } from "../../../src/access/jwt.ts";
import { readKeys } from "../../../src/access/keys.ts";
import { readMintRequest } from "../../../src/access/mint-request.ts";
import { mustFollow } from "../../../src/access/narrower.ts";
import { isLoopback, OriginRules } from "../../../src/access/origin-rules.ts";
import { isIn, plainAddress } from "../../../src/kit/networks.ts";
import { readLine } from "../../../src/ledger/read-ledger.ts";
import { UsageSums } from "../../../src/ledger/usage-sums.ts";
import { parseJson } from "../../../src/protocol/read-json.ts";
import { Chain } from "../../../src/recording/chain.ts";
import { courseOf } from "../../../src/recording/course.ts";
import { firstDifference } from "../../../src/recording/difference.ts";
import { decode } from "../../../src/recording/encode.ts";
import { RecordingReader } from "../../../src/recording/format.ts";
import { answeredSubprotocol, presentedBy, withoutTokens } from "../../../src/server/credential.ts";
import { requireKey } from "../../../src/service/http/auth.ts";
import { linesOf, type Target, textOf, tolerate } from "../target.ts";

const RULES = ["127.0.0.1", "0.0.0.0", "voice.example.com"].map(
  (host) =>
    new OriginRules({
      host,
      publicUrl: "https://voice.example.com",
      allowedHosts: "gateway.internal,[::1]",
      allowedOrigins: "https://app.example.com,https://*.example.org",
    }),
);
/** Nobody may come from there, whatever else the header says. */
const STRANGE = /^https?:\/\/(?:[^/@]*[@.])?evil\.example(?::\d+)?$/;

/** Lines: host, origin, sec-fetch-site, sec-fetch-mode, method, and the two settings. */
const originRules: Target = {
  words: [
    ..."localhost 127.0.0.1 [::1] ::1 ::ffff:127.0.0.1 0x7f.1 2130706433 voice.example.com app.example.com".split(
      " ",
    ),
    ..."https:// http:// null file:// *. . .. : :80 :99999 @ / ? # % evil.example cross-site navigate GET".split(
      " ",
    ),
  ],
  seeds: [
    "localhost:8080\nhttp://localhost:3000\nsame-site\ncors\nGET\n\n",
    "voice.example.com.\nhttps://app.example.com\ncross-site\nnavigate\nget\na.example,b.example\nhttps://*.a.example",
    "[::1]:8080\nhttps://x.example.org\n\n\nPOST\n[::1]\nnull",
    "127.0.0.1\nhttps://evil.example\ncross-site\ncors\nPOST\n\n*",
  ],
  run: (input) => {
    const [host = "", origin = "", fetchSite = "", fetchMode = "", method = "", hosts = "", origins = ""] =
      linesOf(input);
    isLoopback(host);
    const source = { host, origin, fetchSite, fetchMode, method };
    for (const rules of RULES) {
      const reader = tolerate(() => rules.check(source));
      if (typeof reader === "string" && STRANGE.test(reader) && !host.includes("evil")) {
        throw new Error("a page of another origin was let in");
      }
    }
    tolerate(() =>
      new OriginRules({ host, publicUrl: origin, allowedHosts: hosts, allowedOrigins: origins }).check(
        source,
      ),
    );
  },
};

/** Lines: xi-api-key, authorization. */
const serviceKey: Target = {
  words: ["Bearer ", "bearer\t", "sk_0123", "secret", "Basic ", "\u0000"],
  seeds: ["secret\n", "\nBearer secret", "sk_0123abc\n", "\nBasic x"],
  run: (input) => {
    const [key = "", ...authorization] = linesOf(input);
    const headers = { ...(key === "" ? {} : { "xi-api-key": key }), authorization: authorization.join("\n") };
    requireKey("secret", headers);
    if (!input.includes("secret")) throw new Error("a wrong key was let in");
  },
};

const SECRET = Buffer.alloc(32, "s");
const NOW_SECONDS = 1_800_000_000;
/** RFC 7515 appendix A.3, and a seed of zeros: the same keys in every run. */
const EC_KEY = createPrivateKey({
  format: "jwk",
  key: {
    kty: "EC",
    crv: "P-256",
    x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X8fCE9-E9LI",
  },
});
const ED_KEY = createPrivateKey({
  format: "der",
  type: "pkcs8",
  key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32)]),
});
const EC_PEM = publicPem(EC_KEY);
const ED_PEM = publicPem(ED_KEY);

function publicPem(key: typeof EC_KEY): string {
  return createPublicKey(key).export({ type: "spki", format: "pem" }).toString();
}

const KEY_FILE = {
  keys: [
    { id: "server", hash: `sha256:${"0".repeat(64)}`, tenant: "t", expires: "2030-01-01T00:00:00Z" },
    {
      id: "app",
      algorithm: "HS256",
      secret: SECRET.toString("base64url"),
      mints: true,
      limits: { sessions: 5 },
    },
    { id: "ec", algorithm: "ES256", public_key: EC_PEM, grants: { sessions: ["a-*"], allow: ["listen"] } },
    { id: "ed", algorithm: "EdDSA", public_key: ED_PEM },
  ],
  revoked: { tokens: ["gone"], subjects: { bob: NOW_SECONDS } },
};
const CLAIMS = {
  aud: "voicewire",
  sub: "ann",
  iat: NOW_SECONDS,
  exp: NOW_SECONDS + 300,
  nbf: NOW_SECONDS,
  jti: "one",
  vw: {
    sessions: ["a-*", "b"],
    allow: ["open", "speak"],
    voices: ["v*"],
    connection: { format: "pcm_16000" },
    once: true,
  },
} satisfies Claims;
const CLAIM_WORDS = [
  ..."aud sub iat exp nbf jti iss vw voicewire sessions allow voices models formats connection speech proxy".split(
    " ",
  ),
  ..."characters seconds characters_per_minute connections priority_max once session_until origin tenant".split(
    " ",
  ),
  ..."open speak listen interrupt captions call admin alg kid crit typ none HS256 ES256 EdDSA app ec ed server".split(
    " ",
  ),
  ..."id hash algorithm secret public_key mints limits expires revoked tokens subjects gone bob * a-* .".split(
    " ",
  ),
  String(NOW_SECONDS),
  "https://app.example.com",
];

const RING = readKeys(JSON.stringify(KEY_FILE));
const ACCESS = new Access({
  keys: () => RING,
  nowMs: () => NOW_SECONDS * 1000,
  takesTokensInUrl: false,
});

function signed(head: string, claims: string, secret: Buffer): string {
  const input = [head, claims].map((part) => Buffer.from(part).toString("base64url")).join(".");
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
}

/** Lines: place, origin, claims and head in JSON, which are signed here; or a token that is taken as it comes. */
const tokens: Target = {
  words: CLAIM_WORDS,
  seeds: [
    `header\n\n${JSON.stringify(CLAIMS)}\n{"alg":"HS256","typ":"JWT","kid":"app"}`,
    `url\nhttps://app.example.com\n${JSON.stringify({ ...CLAIMS, aud: ["x", "voicewire"], iss: "server" })}\n{"alg":"HS256","kid":"app"}`,
    `subprotocol\n\n${JSON.stringify({ ...CLAIMS, sub: "bob" })}\n{"alg":"none","kid":"ec","crit":["b64"]}`,
    `header\n\n${signJwt(CLAIMS, { algorithm: "EdDSA", key: ED_KEY }, "ed")}`,
    "header\n\neyJhbGciOiJFUzI1NiIsImtpZCI6ImVjIn0.e30.AAAA",
    `message\n\nvwk_server_${"A".repeat(43)}`,
  ],
  run: (input) => {
    const [place = "", origin = "", claims = "", head = ""] = linesOf(input);
    const show = (credential: string): Presented => ({ credential, origin, place: place as Place });
    if (!claims.startsWith("{")) {
      ACCESS.identify(show(claims));
      return;
    }
    // Whatever a forged token says, it opens nothing.
    if (tolerate(() => ACCESS.identify(show(signed(head, claims, Buffer.alloc(32, "x"))))) !== undefined) {
      throw new Error("a forged token was taken");
    }
    checkCaller(ACCESS.identify(show(signed(head, claims, SECRET))));
  },
};

/** A caller that was let in keeps to its token, and a connection may go on with the same one. */
function checkCaller(caller: Caller): void {
  const { token } = caller;
  if (token === null) throw new Error("a token was taken for a key");
  if (token.expiresMs < (NOW_SECONDS - 60) * 1000) throw new Error("an expired token was taken");
  for (const action of ["open", "speak", "listen", "admin"] as const) {
    if (caller.may(action) && !token.grants.allow.includes(action))
      throw new Error(`${action} was not allowed`);
  }
  mustFollow(caller, caller);
}

const keyFiles: Target = {
  words: [...CLAIM_WORDS, EC_PEM, ED_PEM, "2030-01-01T00:00:00Z", "-----BEGIN PUBLIC KEY-----"],
  seeds: [JSON.stringify(KEY_FILE), JSON.stringify({ keys: [KEY_FILE.keys[1]] })],
  run: (input) => {
    try {
      for (const { id } of readKeys(textOf(input))) if (id === "") throw new Error("a key without an id");
    } catch (thrown) {
      const isRepeated = thrown instanceof Error && thrown.message.includes(SECRET.toString("base64url"));
      throw isRepeated ? new Error("an error repeats a secret") : thrown;
    }
  },
};

/** Lines: authorization, xi-api-key, sec-websocket-protocol, origin, query. */
const credentials: Target = {
  words:
    "Bearer Token Basic voicewire.v1 voicewire.token. , token= single_use_token= %74oken= Token= & a.b.c vwk_a_ + %00 %ff".split(
      " ",
    ),
  seeds: [
    "Bearer a.b.c\n\nvoicewire.v1, chat\n\nrole=listener",
    "\nkey\n\nhttps://app.example.com\na=1",
    "\n\nvoicewire.v1, voicewire.token.a.b.c\n\n",
    "\n\n\n\na=1&token=a.b.c&single_use_token=a.b.c&b=2",
  ],
  run: (input) => {
    const [authorization = "", key = "", subprotocols = "", origin = "", query = ""] = linesOf(input);
    const headers = new Map([
      ["authorization", authorization],
      ["xi-api-key", key],
      ["sec-websocket-protocol", subprotocols],
      ["origin", origin],
    ]);
    const request = { getHeader: (name: string) => headers.get(name) ?? "", getQuery: () => query };
    const req = request as unknown as HttpRequest;
    if (answeredSubprotocol(req).startsWith("voicewire.token.")) throw new Error("a token is answered");
    const rest = new URLSearchParams(withoutTokens(query));
    if (rest.has("token") || rest.has("single_use_token")) throw new Error("a token is handed on");
    tolerate(() => ACCESS.identify(presentedBy(req)));
  },
};

const TRUST = readProxyTrust({ trustedProxies: "10.0.0.0/8, ::1", proxyProtocol: true });

/** Lines: the connection's other end, the PROXY protocol's address, x-forwarded-for, and the setting. */
const clientAddresses: Target = {
  words:
    "10.0.0.1 192.0.2.7 ::1 ::ffff:10.0.0.1 [2001:db8::7]:1234 fe80::1%eth0 unknown , 10.0.0.0/8 /33 192.0.2.7:80".split(
      " ",
    ),
  seeds: [
    "10.0.0.1\n192.0.2.7\n198.51.100.4, 10.0.0.2\n10.0.0.0/8",
    "192.0.2.9\n\n10.0.0.1\n::1, 192.0.2.0/24",
    "::1\n\n[2001:db8::7]:1234, unknown\n",
  ],
  run: (input) => {
    const [peer = "", proxied = "", forwarded = "", trustedProxies = ""] = linesOf(input);
    const source = { peer, proxied: () => proxied, forwardedFor: () => forwarded };
    if (TRUST.proxies === null || !isIn(TRUST.proxies, plainAddress(peer))) {
      // Whoever is no proxy can't choose an address.
      const own = clientAddress({ ...source, proxied: () => "", forwardedFor: () => "" }, TRUST);
      if (clientAddress(source, TRUST) !== own) throw new Error("a stranger chose an address");
    } else clientAddress(source, TRUST);
    tolerate(() => clientAddress(source, readProxyTrust({ trustedProxies, proxyProtocol: true })));
  },
};

/** The body of POST /tokens: no token may do what its key may not. */
const mintRequests: Target = {
  words: [...CLAIM_WORDS, "subject", "grants", "expires_in_seconds"],
  seeds: [
    '{"subject":"ann","grants":{"sessions":["a-b"],"allow":["listen"]},"expires_in_seconds":60}',
    '{"grants":{"sessions":["a-*"],"allow":["listen"],"once":true,"connection":{"format":"pcm_16000"}}}',
  ],
  run: (input) => {
    const key = RING.find("ec");
    if (key === undefined) throw new Error("the key is missing");
    const body = tolerate(() => parseJson(textOf(input), "Body"));
    if (body === undefined) return;
    const { grants } = readMintRequest(body, key);
    if (grants.allow.some((action) => action !== "listen"))
      throw new Error("a token may do more than its key");
    if (!grants.sessions.every((session) => session.startsWith("a-")))
      throw new Error("other sessions than its key's");
  },
};

/** A line of a ledger: nothing of it makes a sum that is no number. */
const ledgerLines: Target = {
  words: [
    "v",
    "type",
    "request",
    "heard",
    "chars_sent",
    "chars_billed",
    "audio_ms",
    "heard_ms",
    "null",
    "1e309",
  ],
  seeds: [
    '{"v":1,"id":"a-1","seq":1,"at":"2027-01-31T12:00:00.000Z","node":"n","type":"request","tenant":"t","key":"k","upstream":"u","chars_sent":5,"chars_billed":null,"audio_ms":400,"cached":false}',
    '{"v":1,"id":"a-2","seq":2,"at":"2027-01-31T12:00:00.000Z","node":"n","type":"heard","tenant":"t","key":"k","chars_heard":5,"heard_ms":400}',
  ],
  run: (input) => {
    const line = readLine(textOf(input));
    if (line === null) return;
    const sums = new UsageSums(["tenant", "key", "node", "hour"]);
    sums.add(line);
    const [{ characters, audioMs, heardMs } = { characters: 0, audioMs: 0, heardMs: 0 }] = sums.rows();
    for (const sum of [characters ?? 0, audioMs, heardMs])
      if (!Number.isFinite(sum)) throw new Error("no number");
  },
};

const HEAD =
  '{"voicewire_recording":2,"version":"0","at":"2027-01-31","at_ms":5,"session":"s","epoch":"e","server":"v","text":"kept","settings":{}}';

/** Lines without their hashes, which the target puts before them. */
const recordings: Target = {
  words: [
    "deliver",
    "notify",
    "ask",
    "wave",
    "join",
    "chunk/1#7",
    '{"in":["leave",["l1"],[]]}',
    "words",
    "$",
  ],
  seeds: [
    `${HEAD}\n[5,"join",[1,{"settings":{"role":"both","format":"ulaw_8000"}}],[["notify",[1,{"type":"hello","listener_id":"l1"}]]]]\n{"end":"closed"}`,
    `${HEAD}\n[6,"chunk/1#7",[{"audio":{"$":"bytes","is":"AAAA"}}],[["deliver",[1,2,320,[3],"h",["{\\"type\\":\\"utterance.started\\",\\"utterance_id\\":\\"u\\",\\"start_ms\\":0}"]]],["wave",[0,[1,2]]],{"in":["leave",["l1",{}],[]]}]]`,
  ],
  run: (input) => {
    const [signing, reading] = [new Chain(), new Chain()];
    const reader = new RecordingReader((json) => reading.next(json));
    for (const line of textOf(input).split("\n")) reader.line(signing.sign(line));
    const recording = reader.done();
    const { durationMs, words, wave } = courseOf(recording);
    if (!(durationMs >= 0)) throw new Error("no time");
    if (words.some(({ startMs }) => Number.isNaN(startMs)) || wave.some(({ atMs }) => Number.isNaN(atMs)))
      throw new Error("no place");
    const [first, second] = recording.entries;
    firstDifference(first?.items ?? [], second?.items ?? []);
    for (const entry of recording.entries) decode(entry.says);
  },
};

export const ACCESS_TARGETS: Readonly<Record<string, Target>> = {
  "origin-rules": originRules,
  "access-tokens": tokens,
  "access-key-files": keyFiles,
  "access-credentials": credentials,
  "access-client-address": clientAddresses,
  "access-mint-requests": mintRequests,
  "service-key": serviceKey,
  "ledger-lines": ledgerLines,
  recordings,
};
