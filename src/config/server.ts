/** Where the gateway is reached, how much it takes, and how it comes to an end. */
import type { SettingRow } from "./setting.ts";

export const SERVER = [
  {
    key: "host",
    kind: "string",
    default: "127.0.0.1",
    about: "Address to listen on; 0.0.0.0 for every interface",
  },
  {
    key: "port",
    kind: "integer",
    default: 8080,
    min: 0,
    max: 65535,
    about: "Port to listen on; 0 picks a free one",
  },
  {
    key: "workers",
    kind: "count",
    default: 1,
    min: 1,
    max: 64,
    about:
      "Gateway processes behind the port, one for each core that is to be used; auto = one for each there is",
  },
  {
    key: "opsHost",
    kind: "string",
    default: "127.0.0.1",
    about: "Address of the operations port: /metrics, and /healthz and /readyz with details",
  },
  {
    key: "opsPort",
    kind: "optionalPort",
    default: 0,
    about: "The operations port; 0 picks a free one, which `serve` prints; off = none",
  },
  {
    key: "publicUrl",
    kind: "string",
    default: "",
    about: "How carriers reach the gateway, e.g. wss://voice.example.com; needed with twilio-auth-token",
  },
  {
    key: "insecure",
    kind: "boolean",
    default: false,
    about:
      "Without keys, start although others reach host, ops-host or a proxy of trusted-proxies: they may listen, speak and spend the key",
  },
  {
    key: "keysFile",
    kind: "string",
    default: "",
    about:
      "File of keys: with it every request needs a key or a token (docs/access.md); read again when it changes",
  },
  {
    key: "tokenInUrl",
    kind: "boolean",
    default: false,
    about: "Take tokens in URLs that are not single-use; URLs stand in logs and histories",
  },
  {
    key: "auditLog",
    kind: "string",
    default: "",
    about:
      "File to which each use of a key or token is added, one JSON line each; without it the log has them",
  },
  {
    key: "ledger",
    kind: "string",
    default: "",
    about:
      "File to which a JSON line is added for each request to a speech service and each utterance heard; without it usage is not written down",
  },
  {
    key: "record",
    kind: "string",
    default: "",
    about:
      "Folder to which each session is recorded, with its texts and audio, for `voicewire replay`; without it nothing is (docs/operate.md)",
  },
  {
    key: "recordText",
    kind: "choice",
    default: "keep",
    choices: ["keep", "hash"],
    about:
      "hash = recordings have hashes in place of texts and audio: they show what happened, and can't be replayed",
  },
  {
    key: "recordMb",
    kind: "integer",
    default: 256,
    min: 1,
    max: 16_384,
    unit: "MB",
    about: "Longest recording of one session; behind it the session goes on unrecorded",
  },
  {
    key: "recordFolderMb",
    kind: "integer",
    default: 4096,
    min: 1,
    max: 1_048_576,
    unit: "MB",
    about: "Room for all recordings in the folder; behind it nothing more is recorded until some are deleted",
  },
  {
    key: "otlpEndpoint",
    kind: "string",
    default: "",
    isSecret: true,
    about:
      "Collector that gets traces by OTLP over HTTP, e.g. http://127.0.0.1:4318; without it nothing is traced",
  },
  {
    key: "allowedHosts",
    kind: "string",
    default: "",
    about:
      "Names by which the gateway is reached, with commas, beside localhost, host and that of public-url",
  },
  {
    key: "allowedOrigins",
    flag: "allow-origin",
    kind: "string",
    default: "",
    about:
      "Origins whose pages may use the gateway, with commas, e.g. https://*.example.com; loopback ones may",
  },
  {
    key: "tlsCert",
    kind: "string",
    default: "",
    about: "PEM file with the certificate, then those that vouch for it: the port speaks https and wss alone",
  },
  {
    key: "tlsKey",
    kind: "string",
    default: "",
    about:
      "PEM file with the private key of tls-cert, without a passphrase; both may be replaced while it runs",
  },
  {
    key: "hstsSeconds",
    kind: "integer",
    default: 31_536_000,
    min: 0,
    max: 63_072_000,
    about:
      "Seconds that browsers shall use https alone with this host (HSTS), where tls-cert is set; 0 = not said",
  },
  {
    key: "trustedProxies",
    kind: "string",
    default: "",
    about:
      "Addresses and networks of reverse proxies, with commas, e.g. 10.0.0.0/8: only they may say for whom they ask",
  },
  {
    key: "proxyProtocol",
    kind: "boolean",
    default: false,
    about: "Take the client's address from the PROXY protocol (version 2) of trusted-proxies",
  },
  {
    key: "dataFolder",
    flag: "data",
    kind: "string",
    default: "",
    about:
      "Folder in which the embedded service keeps history, voices and webhooks; without it only while it runs",
  },
  {
    key: "voiceModels",
    kind: "string",
    default: "",
    about:
      "Folder of neural voice models, a folder each, that the embedded service speaks with; needs sherpa-onnx-node (docs/service.md)",
  },
  {
    key: "faults",
    kind: "boolean",
    default: false,
    about:
      "For tests: the embedded service fails where a request's x-voicewire-fault says so (docs/faults.md)",
  },
  {
    key: "maxSessions",
    kind: "integer",
    default: 10_000,
    min: 1,
    max: 1_000_000,
    about: "Most sessions at once",
  },
  {
    key: "maxListeners",
    kind: "integer",
    default: 10_000,
    min: 1,
    max: 1_000_000,
    unit: "connections",
    about: "Most connections on one session",
  },
  {
    key: "maxUploadsPerClient",
    kind: "integer",
    default: 4,
    min: 1,
    max: 10_000,
    about:
      "Most uploads of one client address at once under /v1 and /v2; behind a reverse proxy set trusted-proxies, too",
  },
  {
    key: "addressLimits",
    kind: "choice",
    default: "remote",
    choices: ["remote", "all", "off"],
    about:
      "Which addresses have the limits below: all but loopback, all, or none; see Limits in docs/access.md",
  },
  {
    key: "connectionsPerAddress",
    kind: "integer",
    default: 256,
    min: 0,
    max: 1_000_000,
    unit: "connections",
    about: "Most connections of one client address at once; 0 = no limit, as for those below",
  },
  {
    key: "opensPerSecond",
    kind: "integer",
    default: 20,
    min: 0,
    max: 1_000_000,
    about: "Most connections that one client address opens in a second; five times as many at once",
  },
  {
    key: "failuresPerMinute",
    kind: "integer",
    default: 10,
    min: 0,
    max: 1_000_000,
    about: "Most keys and tokens of one client address in a minute that do not hold",
  },
  {
    key: "sessionsPerAddress",
    kind: "integer",
    default: 64,
    min: 0,
    max: 1_000_000,
    about: "Most sessions at once that one client address has opened",
  },
  {
    key: "connectionsPerSubject",
    kind: "integer",
    default: 64,
    min: 0,
    max: 1_000_000,
    unit: "connections",
    about: "Most connections at once of one subject of tokens, where its token names no number",
  },
  {
    key: "sessionsPerSubject",
    kind: "integer",
    default: 64,
    min: 0,
    max: 1_000_000,
    about: "Most sessions at once that one subject of tokens has opened",
  },
  {
    key: "proxiedPerClient",
    kind: "integer",
    default: 32,
    min: 0,
    max: 1_000_000,
    about:
      "Most requests under /v1 and /v2 at once of one client address, and of one subject of tokens, that are passed upstream",
  },
  {
    key: "mp3PerClient",
    kind: "integer",
    default: 2,
    min: 0,
    max: 1_000_000,
    about:
      "Most MP3 streams of sessions at once of one client address, and of one subject of tokens; all have 8",
  },
  {
    key: "opusPerClient",
    kind: "integer",
    default: 15,
    min: 0,
    max: 1_000_000,
    about:
      "Most Opus renditions that one subject of tokens hears at once, and without keys one client address; an encoder thread has 60",
  },
  {
    key: "maxRtpPorts",
    kind: "integer",
    default: 100,
    min: 0,
    max: 1_000_000,
    about: "Most RTP ports at once of one key and its tokens, where its entry names no number",
  },
  {
    key: "charactersPerMinute",
    kind: "integer",
    default: 20_000,
    min: 0,
    max: 1_000_000_000,
    unit: "characters",
    about:
      "Most characters that one subject of tokens has spoken in a minute, where its token names no number",
  },
  {
    key: "messagesPerSecond",
    kind: "integer",
    default: 200,
    min: 0,
    max: 1_000_000,
    about:
      "Most messages of one connection in a second, of limited addresses and with keys; 25 times as many at once",
  },
  {
    key: "bytesPerSecond",
    kind: "integer",
    default: 262_144,
    min: 0,
    max: 1_000_000_000,
    unit: "bytes",
    about:
      "Most bytes of messages of one connection in a second, as above, and of one address in bodies of requests; 16 times as many at once",
  },
  {
    key: "maxMessageBytes",
    kind: "integer",
    default: 262_144,
    min: 1024,
    max: 16_777_216,
    unit: "bytes",
    about: "Largest message or request body from a client",
  },
  {
    key: "receivedMb",
    kind: "integer",
    default: 256,
    min: 1,
    max: 100_000,
    unit: "MB",
    about:
      "Memory for all that clients have sent and that is not handled: bodies of requests, and messages that wait",
  },
  {
    key: "maxOutboxBytes",
    kind: "integer",
    default: 262_144,
    min: 16_384,
    max: 67_108_864,
    unit: "bytes",
    about:
      "Bytes that may wait for one slow connection: from half of them on it is behind, a batch above them it is closed",
  },
  {
    key: "graceMs",
    kind: "integer",
    default: 5000,
    min: 0,
    max: 600_000,
    unit: "ms",
    about: "How long a session without any connection lives on before its upstream is aborted",
  },
  {
    key: "drainDelayMs",
    kind: "integer",
    default: 0,
    min: 0,
    max: 600_000,
    unit: "ms",
    about:
      "How long a shutdown still takes connections while /readyz says no: until load balancers have seen it",
  },
  {
    key: "drainMs",
    kind: "integer",
    default: 10_000,
    min: 0,
    max: 600_000,
    unit: "ms",
    about: "How long a shutdown waits for speech to end",
  },
  {
    key: "idleSeconds",
    kind: "integer",
    default: 120,
    min: 8,
    max: 960,
    about: "Seconds without any sign of a connection (pings are answered) before it is closed",
  },
  {
    key: "maxConnectionMinutes",
    kind: "integer",
    default: 1440,
    min: 0,
    max: 525_600,
    about:
      "Longest age of a connection; each is closed with 1001 in the last tenth of it, to connect again; 0 = no limit",
  },
  {
    key: "wyomingPort",
    kind: "integer",
    default: 0,
    min: 0,
    max: 65_535,
    about: "TCP port for Wyoming clients such as Home Assistant (docs/upstreams.md), usually 10200; 0 = none",
  },
  {
    key: "wyomingAllow",
    kind: "string",
    default: "",
    about:
      "Networks that Wyoming clients may come from, e.g. 192.168.1.0/24; empty: this machine, and nobody where keys-file is set",
  },
  {
    key: "logLevel",
    kind: "choice",
    default: "info",
    choices: ["silent", "error", "warn", "info", "debug"],
    about: "How much is logged",
  },
] as const satisfies readonly SettingRow[];
