/** Settings that the files of examples/deploy/ give: they exist, and their values are taken. */
import { describe, expect, it } from "vitest";
import { nodeNameOf, nodeUrlOf } from "../../src/cli/serve/cluster.ts";
import { settingsFrom } from "../../src/cli/settings.ts";
import {
  composeFile,
  type Environment,
  environmentOf,
  environmentOfContainer,
  manifests,
  podTemplateOf,
  textOf,
  unknownSettings,
} from "./deploy-files.ts";

const ENVIRONMENTS: readonly (readonly [string, Environment])[] = [
  ["systemd/voicewire.env", environmentOf(textOf("systemd/voicewire.env"))],
  [
    "systemd/voicewire.env with what is commented out",
    environmentOf(textOf("systemd/voicewire.env").replace(/^#(?=[A-Z_]+=)/gm, "")),
  ],
  ...Object.entries(composeFile({ NATS_PASSWORD: "p" }).services).map(
    ([name, { environment = {} }]) => [`compose: ${name}`, environment] as const,
  ),
  ...manifests().flatMap((manifest) =>
    (podTemplateOf(manifest)?.spec.containers ?? []).map(
      (container) => [`kubernetes: ${container.name}`, environmentOfContainer(container)] as const,
    ),
  ),
];

describe("settings in examples/deploy", () => {
  it.each(ENVIRONMENTS)("%s: all are known, and take their values", (_, environment) => {
    expect(unknownSettings(environment)).toEqual([]);
    const { config } = settingsFrom({ env: environment });
    // Read when the gateway starts.
    expect(() => [nodeNameOf(config), nodeUrlOf(config)]).not.toThrow();
  });

  it("one that no gateway has is found, and a value that is not allowed", () => {
    expect(unknownSettings({ VOICEWIRE_PROT: "8080", VOICEWIRE_PORT: "1", NATS_PASSWORD: "p" })).toEqual([
      "VOICEWIRE_PROT",
    ]);
    expect(() => settingsFrom({ env: { VOICEWIRE_DRAIN_MS: "11min" } })).toThrow(/drainMs/);
  });

  it("gateways that others reach have keys", () => {
    const isGateway = ([, environment]: (typeof ENVIRONMENTS)[number]): boolean =>
      environment.VOICEWIRE_CLUSTER !== undefined;
    const gateways = ENVIRONMENTS.filter(isGateway);
    expect(gateways).toHaveLength(5);
    for (const [name, environment] of gateways) {
      expect(environment.VOICEWIRE_KEYS_FILE, name).toMatch(/^\//);
      expect(environment.VOICEWIRE_INSECURE, name).toBeUndefined();
    }
  });
});
