// What a bot would hand to Discord, without Discord: says a text and counts. Start a gateway first: npm start
//   node examples/discord-voice/rehearse.mjs "Hello from voicewire."
//   VOICEWIRE_URL=ws://127.0.0.1:8080     where the gateway is
import { SILENCE_FRAME } from "./packet-pacer.mjs";
import { joinSession } from "./session-voice.mjs";

const text = process.argv[2] ?? "Hello from voicewire.";
const gateway = process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080";
let packets = 0;
let bytes = 0;
let silence = 0;
let isSpeaking = false;
let isDone = false;

const sink = {
  setSpeaking(value) {
    isSpeaking = value;
    if (isDone && !isSpeaking) finish();
  },
  playOpusPacket(packet) {
    if (packet.equals(SILENCE_FRAME)) silence += 1;
    else {
      packets += 1;
      bytes += packet.length;
    }
  },
};

function onEvent(event) {
  if (event.type === "words") console.log(event.words.map((word) => word.text).join(" "));
  if (event.type === "error") {
    console.error(`${event.code}: ${event.message}`);
    process.exitCode = 1;
  }
  if (event.type !== "utterance.done") return;
  isDone = true;
  if (!isSpeaking) finish();
}

function finish() {
  console.log(`${packets} packets of 20 ms (${bytes} bytes), then ${silence} of silence.`);
  voice.close();
}

const voice = await joinSession({ gateway, session: "example-discord", sink, onEvent }).catch((error) => {
  console.error(`Can't reach the gateway: ${error.message}. Start one with: npm start`);
  process.exit(1);
});
voice.send({ type: "speak", text });
await voice.closed;
