// Says a sentence and prints when each word is heard, as the gateway tells it (a little ahead). Start a gateway first: npm start
//   node examples/speak.mjs "Hello from voicewire."
import WebSocket from "ws";

const text = process.argv[2] ?? "Hello from voicewire.";
const gateway = process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080";
const socket = new WebSocket(`${gateway}/live/example-speak?format=pcm_24000`);
let bytes = 0;

socket.on("open", () => socket.send(JSON.stringify({ type: "speak", text })));
socket.on("message", (data, isBinary) => {
  if (isBinary) {
    bytes += data.length;
    return;
  }
  const event = JSON.parse(data.toString());
  if (event.type === "words") {
    for (const word of event.words) console.log(`${word.start_ms.toFixed(0).padStart(6)} ms  ${word.text}`);
  }
  if (event.type === "error") console.error(`${event.code}: ${event.message}`);
  if (event.type === "utterance.done") {
    console.log(`${event.outcome}: ${event.end_ms.toFixed(0)} ms of speech, ${bytes} bytes`);
    socket.close();
  }
});
socket.on("error", (error) => {
  console.error(`Can't reach the gateway: ${error.message}. Start one with: npm start`);
  process.exitCode = 1;
});
