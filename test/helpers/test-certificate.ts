/** A certificate of nobody, for "localhost", good until 2126: made for tests alone, its key is no secret. */
export const TEST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgI57Lvh7qKc4/cRLy
bMWesUtNMe9cICOwYJLyk/h+/OuhRANCAASQJkbin6PVDhDSbllKP2XEzGCpadlW
b6ojRLgAgCfWlIQgNat2mxP3pb0JaalA4b2XduTVnVD9lIm+yk54Asgt
-----END PRIVATE KEY-----
`;
export const TEST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUe+HwMBxyIo1m4dpnKO0nxPE4I/AwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjEyMjAxMVoYDzIxMjYxMDI5
MTIyMDExWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASQJkbin6PVDhDSbllKP2XEzGCpadlWb6ojRLgAgCfWlIQgNat2mxP3
pb0JaalA4b2XduTVnVD9lIm+yk54Asgto1MwUTAdBgNVHQ4EFgQU9kX+8jUbZUU+
zj2/tTzHmnzFmLAwHwYDVR0jBBgwFoAU9kX+8jUbZUU+zj2/tTzHmnzFmLAwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAtDv8hr83NpUFECNYQvlp
wwzApupEpolx7ZwWy3qAt3kCIGyGaGW6vJMG/LNtS6JrZumq9JpIU5xnxgcbwqsk
9KWO
-----END CERTIFICATE-----
`;

/** Lets this process connect to a server that shows it: Node reads the variable at each handshake. Undone on disposal. */
export function trustTestCertificate(): Disposable {
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  return {
    [Symbol.dispose]: () => {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    },
  };
}
