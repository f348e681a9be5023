// The gateway's socket -> sound and mouth shapes, on one clock.
import { Face, LEAD_MS, MouthTrack } from "./face.mjs";
import { Player } from "./player.mjs";

const query = new URLSearchParams(location.search);
const gateway = query.get("gateway") ?? "ws://127.0.0.1:8080";
const session = query.get("session") ?? `avatar-${Math.random().toString(36).slice(2, 10)}`;
const status = document.querySelector("#status");
const form = document.querySelector("form");

const face = new Face(document.querySelector("#face"));
const mouth = new MouthTrack();
const player = new Player();

const socket = new WebSocket(`${gateway}/live/${session}?format=pcm_24000&events=visemes`);
socket.binaryType = "arraybuffer";
socket.onmessage = ({ data }) => {
  if (typeof data === "string") take(JSON.parse(data));
  else player.push(data);
};
socket.onopen = () => say("Connected.");
socket.onclose = () => say(`Not connected to ${gateway}. Start a gateway with: npm start`);

function take(event) {
  if (event.type === "hello" || event.type === "configured") player.moveTo(event.audio.start_ms);
  else if (event.type === "viseme") mouth.add(event);
  else if (event.type === "gap") player.skip(event.ms);
  else if (event.type === "interrupted") {
    player.cut(event.next_ms);
    mouth.cutAt(event.at_ms);
  } else if (event.type === "error") say(event.message);
  else if (event.type === "utterance.done") say(`Said: ${event.outcome}.`);
}

form.onsubmit = async (event) => {
  event.preventDefault();
  await player.resume();
  socket.send(JSON.stringify({ type: "speak", text: form.elements.text.value }));
  say("Speaking.");
};
form.elements.stop.onclick = () => socket.send(JSON.stringify({ type: "interrupt" }));

let lastMs = performance.now();
let shown = "sil";
function frame(nowMs) {
  const heardMs = player.heardMs();
  const viseme = heardMs === null ? "sil" : mouth.at(heardMs + LEAD_MS);
  face.draw(viseme, nowMs - lastMs);
  // For whoever wants to follow the mouth: what it shows, and what is heard at that moment.
  if (viseme !== shown) dispatchEvent(new CustomEvent("mouth", { detail: { viseme, heardMs } }));
  shown = viseme;
  lastMs = nowMs;
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);

function say(text) {
  status.textContent = text;
}
