import { expect, test } from "vitest";
import { childEnvironment } from "../../../src/cli/serve/embedded.ts";
import { SETTINGS, type Setting } from "../../../src/config.ts";

test("childEnvironment(): leaves out what is named like a secret, in any case, and keeps the rest", () => {
  const secrets = {
    ELEVENLABS_API_KEY: "k",
    TWILIO_AUTH_TOKEN: "t",
    AWS_SECRET_ACCESS_KEY: "s",
    client_secret: "c",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=x",
    My_Token: "m",
    VOICEWIRE_OBS_PASSWORD: "o",
    PGPASSWORD: "p",
    VOICEWIRE_ZOOM_URL: "https://zoom.example/?token=z",
    VOICEWIRE_YOUTUBE_URL: "https://youtube.example/?cid=y",
  };
  const others = {
    PATH: "/bin",
    TMPDIR: "/tmp",
    NODE_EXTRA_CA_CERTS: "ca.pem",
    KEYBOARD: "qwerty",
    TOKEN_FILE: "f",
    PASSWORD_FILE: "f",
    VOICEWIRE_PORT: "1",
  };
  expect(childEnvironment({ ...secrets, ...others })).toEqual(others);
});

test("childEnvironment(): leaves out each setting that is a secret", () => {
  const settings: readonly Setting[] = SETTINGS;
  const environment = Object.fromEntries(settings.map(({ env }) => [env, "value"]));
  const secrets = settings.filter(({ isSecret }) => isSecret === true).map(({ env }) => env);
  expect(secrets).toContain("VOICEWIRE_UPSTREAM_KEY");
  const kept = Object.keys(childEnvironment(environment));
  // The file of a key is no secret, but named like one. The service has no use for it.
  const leftOut = [...secrets, "VOICEWIRE_TLS_KEY", "VOICEWIRE_CLUSTER_TLS_KEY"];
  expect(kept).toEqual(Object.keys(environment).filter((name) => !leftOut.includes(name)));
});
