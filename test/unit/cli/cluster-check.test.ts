/** What `doctor` says of the network on which a cluster's bus is. */
import { describe, expect, it } from "vitest";
import { networkWorries } from "../../../src/cli/doctor/cluster-check.ts";
import { parseNatsUrl } from "../../../src/cluster/bus/nats-options.ts";
import { DEFAULTS } from "../../helpers/start-gateway.ts";

const READ_PASSWORD = "others on the network can read its password, texts and audio";
const READ_TEXTS = "others on the network can read texts and audio";
const NO_CREDENTIALS = "who reaches it may listen and speak in every session: it asks for no credentials";

function worries(cluster: string, settings: object = {}): string[] {
  return networkWorries(parseNatsUrl(cluster), { ...DEFAULTS, cluster, ...settings }).map(({ what }) => what);
}

describe("the network of the bus", () => {
  it.each([
    ["nats://127.0.0.1:4222", []],
    ["nats://user:secret@localhost:4222", []],
    ["nats://user:secret@[::1]:4222", []],
    ["tls://user:secret@bus.example.com", []],
    ["nats://user:secret@10.0.0.7:4222", [READ_PASSWORD]],
    ["nats://token@127.0.0.1,10.0.0.7:4222", [READ_PASSWORD]],
    ["nats://10.0.0.7:4222", [READ_TEXTS, NO_CREDENTIALS]],
    ["tls://10.0.0.7:4222", [NO_CREDENTIALS]],
  ])("%s", (cluster, expected) => {
    expect(worries(cluster)).toEqual(expected);
  });

  it("heeds files of credentials and of TLS", () => {
    expect(worries("nats://10.0.0.7", { clusterCredentials: "a.creds" })).toEqual([READ_TEXTS]);
    expect(worries("nats://10.0.0.7", { clusterTlsCert: "a.pem", clusterTlsKey: "a.key" })).toEqual([]);
  });
});
