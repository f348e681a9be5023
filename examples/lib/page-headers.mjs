// Headers of an example's answers: a browser holds them to these.

/** What a page may do: run this server's scripts, talk to the gateway that its address names, and stand in nobody's frame. */
export const PAGE_HEADERS = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "media-src http: https: blob:",
    "connect-src http: https: ws: wss:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
};

/** Of an answer that is no page: a browser that opens it runs nothing, guesses no type, and tells nobody its address. */
export const DATA_HEADERS = {
  "content-security-policy": "sandbox; default-src 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};
