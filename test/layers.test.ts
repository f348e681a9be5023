/** Holds the layer table of src/README.md against the imports: "file -> target" is what a failure says. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { describe, expect, it } from "vitest";

const SRC = new URL("../src", import.meta.url).pathname;

/** Folder (or top-level file) -> what it may import by value. Types of anything at or below one's layer are free. */
const ALLOWED: Record<string, readonly string[]> = {
  kit: ["errors.ts"],
  "errors.ts": [],
  "version.ts": [],
  config: [],
  access: ["kit", "errors.ts"],
  "config.ts": ["config"],
  audio: ["kit", "errors.ts"],
  text: ["kit", "errors.ts"],
  timing: ["kit", "errors.ts"],
  protocol: ["kit", "errors.ts"],
  metrics: ["kit", "errors.ts"],
  tracing: ["kit", "errors.ts"],
  ledger: ["kit", "errors.ts"],
  upstream: ["kit", "errors.ts", "audio", "text", "timing", "protocol", "metrics"],
  delivery: ["kit", "errors.ts", "audio", "text", "timing", "protocol", "metrics"],
  service: ["kit", "errors.ts", "access", "audio", "text", "timing", "protocol", "metrics"],
  session: [
    "kit",
    "errors.ts",
    "config.ts",
    "audio",
    "text",
    "timing",
    "protocol",
    "metrics",
    "delivery",
    "upstream",
  ],
  telephony: [
    "kit",
    "errors.ts",
    "audio",
    "text",
    "timing",
    "protocol",
    "metrics",
    "delivery",
    "upstream",
    "session",
  ],
  recording: ["kit", "errors.ts", "version.ts", "metrics", "session"],
  "vendor-sockets": [
    "kit",
    "errors.ts",
    "audio",
    "timing",
    "protocol",
    "metrics",
    "text",
    "upstream",
    "session",
  ],
  cluster: ["kit", "errors.ts", "protocol"],
  server: [
    "kit",
    "errors.ts",
    "access",
    "session",
    "telephony",
    "vendor-sockets",
    "protocol",
    "metrics",
    "audio",
    "cluster",
  ],
  "gateway.ts": ["*"],
  cli: ["*"],
  "main.ts": ["cli", "kit", "errors.ts"],
  "index.ts": ["cli", "kit", "errors.ts", "config.ts"],
  client: [],
  page: ["client", "recording"],
};
/** Types may also come from these. */
const TYPE_ALLOWED: Record<string, readonly string[]> = {
  audio: ["protocol"],
  text: ["protocol", "timing"],
  timing: ["protocol", "text", "audio"],
  protocol: ["timing", "text", "audio"],
  server: ["delivery", "tracing", "ledger"],
  session: ["tracing", "ledger"],
  upstream: ["ledger"],
  "vendor-sockets": ["tracing"],
  cluster: ["delivery", "session", "metrics"],
  recording: ["delivery", "protocol"],
  tracing: ["metrics"],
  ledger: ["metrics"],
  client: ["protocol"],
  page: ["protocol"],
};
/** Third-party library -> where it may be imported. */
const LIBRARIES: Record<string, readonly string[]> = {
  "uWebSockets.js": ["server", "cli"],
  undici: ["tracing", "upstream"],
  "lru-cache": ["service", "upstream"],
  opusscript: ["audio"],
  "prism-media": ["audio"],
  "wasm-media-encoders": ["audio"],
  "opus-decoder": ["page"],
  fastify: ["service"],
  "@fastify/multipart": ["service"],
  libsql: ["service"],
  fflate: ["service"],
  "@nats-io": ["cluster"],
  "mpg123-decoder": ["service"],
  "@wasm-audio-decoders/flac": ["service"],
  "@wasm-audio-decoders/ogg-vorbis": ["service"],
  "@shiguredo/rnnoise-wasm": ["service"],
  "@echogarden/espeak-ng-emscripten": ["service"],
  zod: ["access", "cluster", "protocol", "service"],
  pino: ["cli"],
  "prom-client": ["metrics"],
  ws: ["cli", "upstream"],
};

interface Import {
  readonly from: string;
  readonly target: string;
  readonly isType: boolean;
}

const files = (readdirSync(SRC, { recursive: true }) as string[]).filter(
  (name) => /\.ts$/.test(name) && !name.endsWith(".d.ts"),
);
const imports: Import[] = files.flatMap((file) => {
  const code = readFileSync(join(SRC, file), "utf8");
  const found = code.matchAll(/^\s*(import|export)\s+(type\s+)?([^;"']*?from\s+)?["']([^"']+)["']/gm);
  return [...found].map((match) => ({
    from: file,
    target: match[4]?.startsWith(".") ? normalize(join(dirname(file), match[4])) : (match[4] ?? ""),
    isType: match[2] !== undefined || onlyTypes(match[3] ?? ""),
  }));
});

/** `import { type A, type B } from` imports nothing at run time. */
function onlyTypes(clause: string): boolean {
  const names =
    /\{([^}]*)\}/
      .exec(clause)?.[1]
      ?.split(",")
      .filter((name) => name.trim() !== "") ?? [];
  return names.length > 0 && names.every((name) => name.trim().startsWith("type "));
}

const roomOf = (path: string): string => path.split("/")[0] ?? path;

/** Who reads JSON, and from whom; folders whose trade it is: the upstream's client, the embedded service, clients of ours. */
const READS_JSON: Record<string, string> = {
  "version.ts": "package.json",
  "access/jwt.ts": "tokens",
  "access/keys.ts": "the file of keys",
  "cluster/bus/heartbeat.ts": "other nodes",
  "cluster/relay/relay-format.ts": "other nodes",
  "cluster/takeover/replica-format.ts": "other nodes",
  "cluster/usage-exchange.ts": "other nodes",
  "ledger/read-ledger.ts": "ledgers, for `voicewire usage`",
  "recording/course.ts": "recordings, for `voicewire replay` and the page",
  "recording/difference.ts": "recordings, for `voicewire replay`",
  "recording/format.ts": "recordings, for `voicewire replay`",
  "recording/recorder.ts": "events, where their texts are taken out",
  "server/proxy/proxy-body.ts": "requests and answers that are passed on",
  "protocol/wyoming.ts": "Wyoming servers and clients",
  "protocol/read-json.ts": "commands, bodies of HTTP commands, requests",
  "protocol/openai.ts": "the upstream's list of voices",
  "session/text-defaults.ts": "the file of replacements",
};
const READS_JSON_FOLDERS = [
  "upstream",
  "service",
  "cli",
  "client",
  "page",
  "protocol/carrier",
  "protocol/elevenlabs",
];

describe("layers", () => {
  it("nobody reads JSON but what comes from outside: events go to listeners as they are", () => {
    const readers = files.filter((file) => readFileSync(join(SRC, file), "utf8").includes("JSON.parse("));
    const inner = readers.filter(
      (file) => !READS_JSON_FOLDERS.some((folder) => file.startsWith(`${folder}/`)),
    );
    expect(inner.sort()).toEqual(Object.keys(READS_JSON).sort());
  });

  it("no file imports against the layer table", () => {
    const wrong = imports
      .filter((edge) => edge.target.endsWith(".ts"))
      .filter((edge) => {
        const from = roomOf(edge.from);
        const to = roomOf(edge.target);
        const allowed = ALLOWED[from] ?? [];
        const types = edge.isType ? (TYPE_ALLOWED[from] ?? []) : [];
        return from !== to && !allowed.includes("*") && !allowed.includes(to) && !types.includes(to);
      });
    expect(wrong.map((edge) => `${edge.from} -> ${edge.target}`)).toEqual([]);
  });

  it("every folder has its place in the table", () => {
    expect([...new Set(files.map(roomOf))].filter((room) => !(room in ALLOWED))).toEqual([]);
  });

  it("each third-party library stays behind its folder", () => {
    const wrong = imports.filter((edge) => {
      const library = Object.keys(LIBRARIES).find(
        (name) => edge.target === name || edge.target.startsWith(`${name}/`),
      );
      return library !== undefined && !LIBRARIES[library]?.includes(roomOf(edge.from));
    });
    expect(wrong.map((edge) => `${edge.from} -> ${edge.target}`)).toEqual([]);
  });

  it("no file that browsers run imports node:", () => {
    const wrong = imports.filter(
      (edge) => ["client", "page"].includes(roomOf(edge.from)) && edge.target.startsWith("node:"),
    );
    expect(wrong.map((edge) => `${edge.from} -> ${edge.target}`)).toEqual([]);
  });

  it("there is no cycle of imports, of values or of types", () => {
    const graph = new Map<string, string[]>();
    for (const edge of imports) {
      if (!edge.target.endsWith(".ts")) continue;
      graph.set(edge.from, [...(graph.get(edge.from) ?? []), edge.target]);
    }
    const done = new Set<string>();
    const visit = (file: string, path: readonly string[]): string[] => {
      if (path.includes(file)) return [[...path.slice(path.indexOf(file)), file].join(" -> ")];
      if (done.has(file)) return [];
      const cycles = (graph.get(file) ?? []).flatMap((target) => visit(target, [...path, file]));
      done.add(file);
      return cycles;
    };
    expect([...graph.keys()].flatMap((file) => visit(file, []))).toEqual([]);
  });

  it.each(["say/say.ts", "listen/listen.ts", "captions/captions.ts"])(
    "%s joins a gateway without loading the gateway's server, its upstreams and codecs",
    (command) => {
      const reached = new Set([`cli/${command}`]);
      // A set takes what is added while it is walked.
      for (const file of reached) {
        for (const edge of imports) if (edge.from === file && !edge.isType) reached.add(edge.target);
      }
      expect(reached).toContain("cli/session/join-session.ts");
      expect(reached).toContain("ws");
      const heavy = [
        "gateway.ts",
        "cli/serve/start.ts",
        "undici",
        "pino",
        "opusscript",
        "wasm-media-encoders",
      ];
      expect(heavy.filter((name) => reached.has(name))).toEqual([]);
    },
  );

  it("no two folders import values of each other, unless one is inside the other", () => {
    const arrows = new Set(
      imports
        .filter((edge) => edge.target.endsWith(".ts") && !edge.isType)
        .map((edge) => `${dirname(edge.from)} ${dirname(edge.target)}`),
    );
    const mutual = [...arrows].filter((arrow) => {
      const [from = "", to = ""] = arrow.split(" ");
      const isInside = from === "." || to.startsWith(`${from}/`) || from.startsWith(`${to}/`);
      return from < to && !isInside && arrows.has(`${to} ${from}`);
    });
    expect(mutual).toEqual([]);
  });

  it("only main.ts, index.ts, worker entries and what serves their jobs touch process", () => {
    const allowed = ["main.ts", "index.ts", "kit/serve-jobs.ts"];
    const wrong = files.filter((file) => {
      if (allowed.includes(file) || /-worker\.ts$/.test(file)) return false;
      return /(?<![.\w])process\.(argv|env|exit|stdout|stderr|stdin|on\()/.test(
        readFileSync(join(SRC, file), "utf8"),
      );
    });
    expect(wrong.map((file) => relative(".", file))).toEqual([]);
  });

  it("an utterance changes its state in the playback queue alone", () => {
    const call =
      /\b(utterance|other|target|latest)\??\.(begin|end|fail|interrupt|rewind|resume|continueFrom)\(/;
    const callers = files.filter((file) => call.test(readFileSync(join(SRC, file), "utf8")));
    expect(callers).toEqual(["session/playback/playback-queue.ts"]);
  });
});
