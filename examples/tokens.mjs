// Feeds text token by token, as a language model does, and interrupts after two seconds.
//   node examples/tokens.mjs
import { setTimeout as wait } from "node:timers/promises";
import WebSocket from "ws";

const tokens =
  "Once upon a time there was a gateway. It spoke while it was still being told what to say. ".split(
    /(?<= )/,
  );
const gateway = process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080";
const socket = new WebSocket(`${gateway}/live/example-tokens?format=ulaw_8000&lead_ms=200`);
const send = (message) => socket.send(JSON.stringify(message));

socket.on("message", (data, isBinary) => {
  if (isBinary) return;
  const event = JSON.parse(data.toString());
  if (event.type === "words") process.stdout.write(`${event.words.map((word) => word.text).join(" ")} `);
  if (event.type === "interrupted") {
    console.log(`\nheard ${event.heard.ms.toFixed(0)} ms: "${event.heard.text}"`);
    console.log(`not heard: "${event.unheard_text}"`);
  }
  if (event.type === "utterance.done") socket.close();
});
socket.on("open", async () => {
  for (const token of tokens) {
    send({ type: "text", text: token });
    await wait(30);
  }
  send({ type: "end" });
  await wait(2000);
  if (socket.readyState === WebSocket.OPEN) send({ type: "interrupt" });
});
socket.on("error", (error) => {
  console.error(`Can't reach the gateway: ${error.message}. Start one with: npm start`);
  process.exitCode = 1;
});
