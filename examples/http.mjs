// A session without a socket of its own for what is said and heard: POST speaks, GET hears and reads captions.
// Start a gateway first: npm start
//   node examples/http.mjs hello.ogg          writes what was heard
//   VOICEWIRE_URL=ws://127.0.0.1:8080         where the gateway is
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import WebSocket from "ws";

const file = process.argv[2] ?? "hello.ogg";
const url = process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080";
const session = `${url}/live/example-http`;
const http = session.replace(/^ws/, "http");

// A session is there as long as somebody is connected: this one only watches.
const watcher = new WebSocket(`${session}?format=none&events=none`);
watcher.on("error", (error) => {
  console.error(`Can't reach the gateway: ${error.message}. Start one with: npm start`);
  process.exit(1);
});
await once(watcher, "open");
let isOver = () => undefined;
watcher.on("message", (data) => {
  if (JSON.parse(data.toString()).type === "utterance.done") isOver();
});

const post = async (command, body) => {
  const answer = await fetch(`${http}/${command}`, { method: "POST", body: JSON.stringify(body) });
  return { status: answer.status, ...(await answer.json()) };
};

const leaving = new AbortController();
const audio = Readable.fromWeb((await fetch(`${http}/audio.ogg`, { signal: leaving.signal })).body);
const saved = createWriteStream(file);
audio.on("data", (piece) => saved.write(piece));
// The live audio goes on for as long as the session does: leaving it is no failure.
audio.on("error", () => saved.end());

// Captions are remembered from the first time that somebody asks for them.
const captions = async () => await (await fetch(`${http}/captions.vtt?live=false`)).text();
await captions();

const said = new Promise((resolve) => {
  isOver = resolve;
});
const { status, utterance_id: utterance, error } = await post("speak", { text: "Hello over HTTP. Goodbye." });
console.log(`speak: ${status} ${utterance ?? error.message}`);
if (status === 202) await said;
process.stdout.write(await captions());

// Nothing speaks any more: refused, with a code that says so.
const cut = await post("interrupt", {});
console.log(`interrupt: ${cut.status} ${cut.error?.code ?? ""}`);
leaving.abort();
await finished(saved);
console.log(`${file}: ${saved.bytesWritten} bytes`);
watcher.close();
