/** Who may use a port: Host, Origin and the operator's lists of them, and the built-in service's key. */
import { isLoopback, OriginRules } from "../../../src/access/origin-rules.ts";
import { requireKey } from "../../../src/service/http/auth.ts";
import { linesOf, type Target, tolerate } from "../target.ts";

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

export const ACCESS_TARGETS: Readonly<Record<string, Target>> = {
  "origin-rules": originRules,
  "service-key": serviceKey,
};
