/** Whether the gateway is alone, and how it finds the others where it is not. */
import type { SettingRow } from "./setting.ts";

export const CLUSTER = [
  {
    key: "cluster",
    kind: "string",
    default: "",
    isSecret: true,
    about:
      "The nodes' nats-server, nats://[user:password@]host[:port] or tls://, several with commas; without it the gateway is alone",
  },
  {
    key: "clusterName",
    kind: "string",
    default: "voicewire",
    about: "Tells clusters on the same nats-server apart: 1 to 32 letters, digits, _ or -",
  },
  {
    key: "clusterCredentials",
    kind: "string",
    default: "",
    about: "File of credentials (JWT and seed) for nats-server, in place of a user in `cluster`",
  },
  {
    key: "clusterTlsCa",
    kind: "string",
    default: "",
    about: "PEM file with the certificates that vouch for nats-server, where the system's do not",
  },
  {
    key: "clusterTlsCert",
    kind: "string",
    default: "",
    about: "PEM file with the certificate that nats-server asks of its clients",
  },
  {
    key: "clusterTlsKey",
    kind: "string",
    default: "",
    about: "PEM file with the private key of cluster-tls-cert",
  },
  {
    key: "nodeName",
    kind: "string",
    default: "",
    about:
      "This node's name in the cluster, unlike every other's: 1 to 64 letters, digits, _ or -; without it the host's name and a random part",
  },
  {
    key: "nodeUrl",
    kind: "string",
    default: "",
    about:
      "How clients reach this node, e.g. https://a.voice.example.com; without it the address that it listens on",
  },
  {
    key: "startAlone",
    kind: "boolean",
    default: false,
    about: "Start though no nats-server can be reached: the gateway is alone until one can",
  },
] as const satisfies readonly SettingRow[];
