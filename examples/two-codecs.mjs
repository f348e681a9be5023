// One speech, two listeners: 20 ms mu-law frames for a telephone bridge and Opus packets for a browser, encoded once each.
//   node examples/two-codecs.mjs
import { once } from "node:events";
import WebSocket from "ws";

const base = `${process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080"}/live/example-codecs`;
const phone = new WebSocket(`${base}?format=ulaw_8000`);
phone.on("error", (error) => {
  console.error(`Can't reach the gateway: ${error.message}. Start one with: npm start`);
  process.exit(1);
});
await once(phone, "open");
const browser = new WebSocket(`${base}?role=listener&format=opus_48000`);
await once(browser, "open");

const count = (socket, name) =>
  new Promise((resolve) => {
    let frames = 0;
    let bytes = 0;
    socket.on("message", (data, isBinary) => {
      if (isBinary) {
        frames += 1;
        bytes += data.length;
      } else if (JSON.parse(data.toString()).type === "utterance.done") {
        console.log(`${name}: ${frames} frames, ${bytes} bytes`);
        socket.close();
        resolve();
      }
    });
  });
const both = Promise.all([count(phone, "ulaw_8000"), count(browser, "opus_48000")]);
phone.send(JSON.stringify({ type: "speak", text: "The same words, to everybody, each in their own codec." }));
await both;
