// Counts what a reader of the code meets: lines, folders, cycles, folders that import each other, and the files on the way of a
// frame, a `words` event and an interruption. Prints; judges nothing. Needs a build: npm run build && node bench/counts.mjs
//
// The way is counted twice, in a running gateway with one listener:
//
// - "on the chain": files that a reader passes who follows the one thing with a finger. The thing is handed over at the
//   places of HANDOVERS below; counted are the files that have a function on the call stack there. Between two such places it
//   lies in a store (chunks that wait, frames, events) until the session's next wake fetches it, so no single stack has all.
//   Where a listener waits for it, the chunk's own call fetches it; that call is left out, or load would change the count.
// - "ran": files in which any function ran meanwhile (V8's precise coverage). Timers, watches and reading ahead are among them.

import { readdirSync, readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { dirname, join, normalize } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import WebSocket from "ws";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SRC = join(ROOT, "src");
const DIST = pathToFileURL(`${join(ROOT, "dist")}/`).href;

// ---- The source

const files = readdirSync(SRC, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"));
const textOf = new Map(files.map((file) => [file, readFileSync(join(SRC, file), "utf8")]));
const roomOf = (file) => (file.includes("/") ? file.split("/")[0] : "(top)");
const linesOf = (file) => textOf.get(file).split("\n").length - 1;

/** [from, to, types only] of every import inside src/. */
const imports = files.flatMap((from) =>
  [
    ...textOf.get(from).matchAll(/^\s*(?:import|export)\s+(type\s+)?([^;"']*?from\s+)?["'](\.[^"']+)["']/gm),
  ].map(([, type, clause = "", path]) => {
    const names =
      /\{([^}]*)\}/
        .exec(clause)?.[1]
        ?.split(",")
        .filter((name) => name.trim() !== "") ?? [];
    const isType = type !== undefined || (names.length > 0 && names.every((name) => /^\s*type /.test(name)));
    return { from, to: normalize(join(dirname(from), path)), isType };
  }),
);

/** Groups of files that reach each other (Tarjan). */
function cycles(edges) {
  const next = new Map();
  for (const { from, to } of edges) next.set(from, [...(next.get(from) ?? []), to]);
  const index = new Map();
  const low = new Map();
  const stack = [];
  const groups = [];
  const visit = (file) => {
    index.set(file, index.size);
    low.set(file, index.get(file));
    stack.push(file);
    for (const to of next.get(file) ?? []) {
      if (!index.has(to)) {
        visit(to);
        low.set(file, Math.min(low.get(file), low.get(to)));
      } else if (stack.includes(to)) low.set(file, Math.min(low.get(file), index.get(to)));
    }
    if (low.get(file) !== index.get(file)) return;
    const group = stack.splice(stack.indexOf(file));
    if (group.length > 1) groups.push(group);
  };
  for (const file of files) if (!index.has(file)) visit(file);
  return groups;
}

/** Pairs of folders, neither inside the other, that import values of each other: one of the two arrows goes up. */
function mutualFolders() {
  const arrows = new Set(
    imports.filter(({ isType }) => !isType).map(({ from, to }) => `${dirname(from)} ${dirname(to)}`),
  );
  return [...arrows].filter((arrow) => {
    const [from, to] = arrow.split(" ");
    const isInside = from === "." || to.startsWith(`${from}/`) || from.startsWith(`${to}/`);
    return !isInside && from < to && arrows.has(`${to} ${from}`);
  });
}

console.log("lines and files by folder");
const rooms = [...new Set(files.map(roomOf))].sort();
for (const room of rooms) {
  const its = files.filter((file) => roomOf(file) === room);
  const folders = [...new Set(its.map(dirname))];
  const fullest = Math.max(...folders.map((folder) => its.filter((file) => dirname(file) === folder).length));
  const lines = its.reduce((sum, file) => sum + linesOf(file), 0);
  console.log(
    `  ${room.padEnd(12)} ${String(lines).padStart(6)} lines ${String(its.length).padStart(4)} files, at most ${fullest} in a folder`,
  );
}
console.log(
  `  ${"all".padEnd(12)} ${String(files.reduce((sum, file) => sum + linesOf(file), 0)).padStart(6)} lines ${String(files.length).padStart(4)} files`,
);
console.log(`value cycles   ${cycles(imports.filter(({ isType }) => !isType)).length}`);
const typeCycles = cycles(imports);
console.log(`type cycles    ${typeCycles.length}`);
for (const group of typeCycles) console.log(`  ${group.join(" ")}`);
const mutual = mutualFolders();
console.log(`folders that import each other  ${mutual.length}`);
for (const pair of mutual) console.log(`  ${pair.replace(" ", " <-> ")}`);

// ---- The running program

const { startGateway } = await import(new URL("index.js", DIST).href);
const inspector = new Session();
inspector.connect();
await inspector.post("Profiler.enable");
const gateway = await startGateway({ port: 0, opsPort: "off", logLevel: "silent", trimMs: 0 });

const TEXT =
  "This is a long sentence that is spoken without any pause so that frames and words go on for a while and then some more. ";

/** Files of src/ in which something ran since the last call. */
async function ranSince() {
  const { result } = await inspector.post("Profiler.takePreciseCoverage");
  return result
    .filter(
      ({ url, functions }) =>
        url.startsWith(DIST) &&
        functions.some(({ functionName, ranges }) => functionName !== "" && ranges[0].count > 0),
    )
    .map(({ url }) => url.slice(DIST.length).replace(/\.js$/, ".ts"))
    .sort();
}

const CHUNK_COMES = "a chunk comes from the upstream";

/** Where each thing is handed over, in its order: [what happens, file, class, method, which calls are meant]. */
const HANDOVERS = {
  frame: [
    [CHUNK_COMES, "session/synthesis/waiting-chunks", "WaitingChunks", "push"],
    ["it is taken to be rendered", "session/synthesis/waiting-chunks", "WaitingChunks", "take"],
    ["a slice is cut from it", "audio/framing/sample-queue", "SampleQueue", "take"],
    ["a frame of that is kept", "delivery/frame-ring", "FrameRing", "append"],
    ["the frame is due", "delivery/frame-ring", "FrameRing", "frame"],
    [
      "it is written to the socket",
      "server/sockets/live-socket",
      "SocketListener",
      "hand",
      ([item]) => item instanceof Uint8Array,
    ],
  ],
  words: [
    [CHUNK_COMES, "session/synthesis/waiting-chunks", "WaitingChunks", "push"],
    ["its alignment becomes times of the text", "timing/response-times", "ResponseTimes", "push"],
    ["times become words", "timing/word-tracker", "WordTracker", "push"],
    ["words get the client's offsets", "timing/client-times", "ClientTimes", "words"],
    ["they wait for their audio", "session/events/segment-events", "SegmentEvents", "addWords"],
    ["the event is logged", "delivery/event-log", "EventLog", "append", ([entry]) => entry.type === "words"],
    ["it becomes JSON", "delivery/event-log", "LoggedEvent", "json", (_, entry) => entry.type === "words"],
    [
      "it is written to the socket",
      "server/sockets/live-socket",
      "SocketListener",
      "hand",
      ([item]) => item.type === "words",
    ],
  ],
  interruption: [
    ["speech is cut", "session/output/output-router", "OutputRouter", "cut"],
    ["the utterance's state changes", "session/playback/utterance", "Utterance", "interrupt"],
    [
      "the event is logged",
      "delivery/event-log",
      "EventLog",
      "append",
      ([entry]) => entry.type === "interrupted",
    ],
    [
      "it is written to the socket",
      "server/sockets/live-socket",
      "SocketListener",
      "hand",
      ([item]) => item.type === "interrupted",
    ],
  ],
};

/** Files of src/ with a function on the call stack, the innermost first. */
function filesOnStack() {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 200;
  const { stack = "" } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  const names = stack.split("\n").flatMap((line) => {
    const at = line.indexOf(DIST);
    return at < 0 ? [] : [line.slice(at + DIST.length).replace(/\.js.*$/, ".ts")];
  });
  return [...new Set(names)];
}

/** Notes the files on the stack at each hand-over until `stop`, which gives them. */
async function watch(handovers) {
  const seen = [];
  const undo = [];
  for (const [what, file, name, method, isMeant = () => true] of handovers) {
    const { prototype } = (await import(new URL(`${file}.js`, DIST).href))[name];
    const own = prototype[method];
    const files = new Set([`${file}.ts`]);
    seen.push([what, files]);
    prototype[method] = function (...given) {
      const stack = isMeant(given, this) ? filesOnStack() : [];
      const isChunks = stack.some((one) => one.startsWith("upstream/transport/"));
      if (!isChunks || what === CHUNK_COMES) for (const one of stack) files.add(one);
      return own.apply(this, given);
    };
    undo.push(() => {
      prototype[method] = own;
    });
  }
  return () => {
    for (const one of undo) one();
    return seen;
  };
}

/** What ran and what was on the chain from the middle of speech on: `ms` of it, behind `action`. */
async function duringSpeech({ query, ms, thing, action = () => undefined }) {
  const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/live/${thing}?${query}`);
  await new Promise((resolve) => socket.on("open", resolve));
  socket.send(JSON.stringify({ type: "speak", text: TEXT.repeat(4) }));
  let frames = 0;
  await new Promise((resolve) =>
    socket.on("message", () => {
      frames += 1;
      if (frames > 20) resolve();
    }),
  );
  const stop = await watch(HANDOVERS[thing]);
  await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await ranSince();
  action(socket);
  await wait(ms);
  const ran = await ranSince();
  await inspector.post("Profiler.stopPreciseCoverage");
  const handovers = stop();
  socket.close();
  await wait(300);
  return { thing, ran, handovers };
}

const ULAW = "format=ulaw_8000";
const frame = await duringSpeech({ thing: "frame", query: `${ULAW}&events=none`, ms: 800 });
const words = await duringSpeech({ thing: "words", query: `${ULAW}&events=words`, ms: 5000 });
const interruption = await duringSpeech({
  thing: "interruption",
  query: `${ULAW}&events=none`,
  ms: 300,
  action: (socket) => socket.send(JSON.stringify({ type: "interrupt" })),
});

for (const { thing, ran, handovers } of [frame, words, interruption]) {
  const chain = new Set(handovers.flatMap(([, files]) => [...files]));
  const isUpstream = (file) => file.startsWith("upstream/");
  console.log(
    `${thing}: ${chain.size} files on the chain, ${[...chain].filter(isUpstream).length} of them in upstream/; ${ran.length} ran`,
  );
  const listed = new Set();
  for (const [what, files] of handovers) {
    console.log(`  ${what}`);
    for (const file of files) if (!listed.has(file)) console.log(`    ${file}`);
    for (const file of files) listed.add(file);
  }
}
const beyond = (some, others) => some.filter((file) => !others.includes(file));
for (const [name, ran] of [
  ["ran for a frame", frame.ran],
  ["ran besides with words", beyond(words.ran, frame.ran)],
  ["ran besides at an interruption", beyond(interruption.ran, frame.ran)],
]) {
  console.log(`${name}: ${ran.length}`);
  for (const file of ran) console.log(`  ${file}`);
}
inspector.disconnect();
await gateway.close();
