/** The speech service behind the gateway: where it is, and how long it is waited for. */
import type { SettingRow } from "./setting.ts";

export const UPSTREAM = [
  {
    key: "upstreamUrl",
    kind: "string",
    default: "embedded",
    about:
      "Base URL of the speech service, or `embedded` for the built-in voice; several with commas, in order of preference",
  },
  {
    key: "upstreamRegion",
    kind: "string",
    default: "none",
    about:
      "Use the vendor's base URL of this region instead of upstream-url: global, us, eu, in or sg; several with commas, in order of preference",
  },
  {
    key: "upstreamKey",
    kind: "string",
    default: "",
    isSecret: true,
    about: "API key sent upstream as xi-api-key; ELEVENLABS_API_KEY is read too",
  },
  {
    key: "upstreams",
    kind: "string",
    default: "",
    about:
      "JSON file that lists other speech services, whose voices are NAME:ID (docs/upstreams.md); without it there are none",
  },
  {
    key: "upstreamConnections",
    kind: "integer",
    default: 1024,
    min: 1,
    max: 65535,
    unit: "connections",
    about: "Most requests open upstream at once",
  },
  {
    key: "upstreamTotal",
    kind: "integer",
    default: 0,
    min: 0,
    max: 1_000_000,
    unit: "connections",
    about:
      "Most requests that all nodes of a cluster have open upstream at once, of each base URL; 0: each has upstream-connections",
  },
  {
    key: "upstreamShare",
    kind: "integer",
    default: 25,
    min: 1,
    max: 100,
    unit: "%",
    about:
      "Most of upstream-connections that one subject of tokens has open at once, 1 at least; see Limits in docs/access.md",
  },
  {
    key: "upstreamQueue",
    kind: "integer",
    default: 4096,
    min: 0,
    max: 1_000_000,
    about: "Most requests that wait for a free upstream connection",
  },
  {
    key: "upstreamTimeoutMs",
    kind: "integer",
    default: 10_000,
    min: 100,
    max: 300_000,
    unit: "ms",
    about: "Longest wait for the upstream's headers, and between two pieces of its body",
  },
  {
    key: "upstreamFailoverMs",
    kind: "integer",
    default: 4000,
    min: 100,
    max: 300_000,
    unit: "ms",
    about:
      "With several regions: longest wait for one to begin with its speech before the next healthy one is asked",
  },
  {
    key: "upstreamPatienceMs",
    kind: "integer",
    default: 20_000,
    min: 0,
    max: 600_000,
    unit: "ms",
    about:
      "How long speech is asked for again that the upstream turned away for too many requests; proxied requests three times that",
  },
  {
    key: "firstAudioMs",
    kind: "integer",
    default: 5000,
    min: 0,
    max: 300_000,
    unit: "ms",
    about:
      "Longest wait for the first audio of a request that has left; then it is given up and asked for again, with twice the wait; 0 = no limit",
  },
  {
    key: "proxyPaths",
    kind: "string",
    default: "",
    about:
      "Requests that are passed upstream besides docs/endpoints.md: `METHOD /path` with commas; {id} is one segment, * at the end all below",
  },
  {
    key: "phraseCacheMb",
    kind: "integer",
    default: 0,
    min: 0,
    max: 100_000,
    unit: "MB",
    about: "Memory for speech that is said again without asking the upstream; 0 = none is kept",
  },
  {
    key: "voice",
    kind: "string",
    default: "",
    about: "Voice used where a client names none; empty picks the upstream's first",
  },
  {
    key: "voices",
    kind: "string",
    default: "",
    about: "Voices of languages, for texts with a language_code and no voice: a list as de=VOICE,pt-br=VOICE",
  },
  {
    key: "model",
    kind: "string",
    default: "",
    about: "Model used where a client names none; empty leaves it to the upstream",
  },
] as const satisfies readonly SettingRow[];
