/** Certificates of nobody, made for tests alone: their keys are no secrets. This one is for "localhost", good until 2126. */
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

/** Another one, for "localhost", "renewed.example" and 127.0.0.1, good from 2020 until 2126. */
export const RENEWED_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAsYaZPKNrhh8EXyG
S0LO5nMNfOv5A9kq6wX7g0wD/LGhRANCAAShL3wQhP1IsSLLTnb8yfkRpZANDitv
6uMAAG3+Jb7Yt3pXqZJghIM/ZE94T73tPvY7zK/08wDUROhhPe0tUl06
-----END PRIVATE KEY-----
`;
export const RENEWED_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIBATAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA9yZW5ld2Vk
LmV4YW1wbGUwIBcNMjAwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBaMBoxGDAW
BgNVBAMMD3JlbmV3ZWQuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
BKEvfBCE/UixIstOdvzJ+RGlkA0OK2/q4wAAbf4lvti3elepkmCEgz9kT3hPve0+
9jvMr/TzANRE6GE97S1SXTqjTjBMMCsGA1UdEQQkMCKCCWxvY2FsaG9zdIIPcmVu
ZXdlZC5leGFtcGxlhwR/AAABMB0GA1UdDgQWBBQNFmRo636NuIt6y/lgu1c2c1gd
ezAKBggqhkjOPQQDAgNIADBFAiA7YskcgSek5lqjXJ6jFz17dQ+qybNIG+Ifu/vh
dTxh4gIhAPdNLYAJ9rR+VFkpV84nhE5q9HK0Id7MQyxB1X3mzj3X
-----END CERTIFICATE-----
`;

/** For "expired.example", which ended on 2021-01-01. */
export const EXPIRED_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXtjr4UlmBt4HYlH4
kSefFYhp4NnU1GX/wvAn6vjqXvihRANCAAT/gDTXCoiZ78sk271rrNdEDtSoyQLY
GcMXsnpGg2aPzIrQRyAizy0CL0JUC/0yNG8uqJ4u9VdlV9eJTfDzvT1U
-----END PRIVATE KEY-----
`;
export const EXPIRED_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBYTCCAQagAwIBAgIBATAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA9leHBpcmVk
LmV4YW1wbGUwHhcNMjAwMTAxMDAwMDAwWhcNMjEwMTAxMDAwMDAwWjAaMRgwFgYD
VQQDDA9leHBpcmVkLmV4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT/
gDTXCoiZ78sk271rrNdEDtSoyQLYGcMXsnpGg2aPzIrQRyAizy0CL0JUC/0yNG8u
qJ4u9VdlV9eJTfDzvT1Uoz0wOzAaBgNVHREEEzARgg9leHBpcmVkLmV4YW1wbGUw
HQYDVR0OBBYEFLb5smFqFjnch/zitFCSBBITCfDTMAoGCCqGSM49BAMCA0kAMEYC
IQCI90n3vN3C9AGgYv698coxF6rsI/q48ijpfwDUA3hRAgIhAMyK9rfiKGRaFTg2
UZBSoNzaH6uGSCPtspEY8rnRkRb5
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
