// Counts what a reader of the code meets: lines, folders, cycles, folders that import each other, and the files that run on the
// way of a frame, an event and an interruption. Prints; judges nothing. Needs a build: npm run build && node bench/counts.mjs
//
// "Files on the way" are those of src/ in which a function ran (V8's precise coverage) while a running gateway did that
// one thing for one listener, the upstream's reading included.

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

/** A listener in the middle of speech, then `action`, `ms` of it. */
async function duringSpeech(session, query, ms, action = () => undefined) {
  const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/live/${session}?${query}`);
  await new Promise((resolve) => socket.on("open", resolve));
  socket.send(JSON.stringify({ type: "speak", text: TEXT.repeat(4) }));
  let frames = 0;
  await new Promise((resolve) =>
    socket.on("message", () => {
      frames += 1;
      if (frames > 20) resolve();
    }),
  );
  await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await ranSince();
  action(socket);
  await wait(ms);
  const ran = await ranSince();
  await inspector.post("Profiler.stopPreciseCoverage");
  socket.close();
  await wait(300);
  return ran;
}

const frame = await duringSpeech("frame", "format=ulaw_8000&events=none", 800);
const event = await duringSpeech("event", "format=ulaw_8000&events=words", 800);
const interrupt = await duringSpeech("cut", "format=ulaw_8000&events=none", 300, (socket) =>
  socket.send(JSON.stringify({ type: "interrupt" })),
);
const beyond = (some, others) => some.filter((file) => !others.includes(file));
for (const [name, ran] of [
  ["files on the way of a frame", frame],
  ["files more with words", beyond(event, frame)],
  ["files more at an interruption", beyond(interrupt, frame)],
]) {
  console.log(`${name}: ${ran.length}`);
  for (const file of ran) console.log(`  ${file}`);
}
inspector.disconnect();
await gateway.close();
