// A session's sound, its captions as they are heard, and both once more when it is over.
import { Board } from "./board.mjs";
import { Delay, Timeline } from "./clock.mjs";
import { Recording } from "./recording.mjs";

const EVENTS = [
  "hello",
  "cue",
  "words",
  "utterance.started",
  "utterance.resumed",
  "utterance.done",
  "interrupted",
];
/** The recording is behind the events by less than this, ms. */
const RECORDED_MS = 400;

const query = new URLSearchParams(location.search);
const gateway = query.get("gateway") ?? "http://127.0.0.1:8080";
const name = query.get("session") ?? `captions-${Math.random().toString(36).slice(2, 10)}`;
const session = `${gateway}/live/${encodeURIComponent(name)}`;
const isObs = query.has("obs");
document.body.classList.toggle("obs", isObs);

const status = document.querySelector("#status");
const live = document.querySelector("#live");
const replay = document.querySelector("#replay");
const form = document.querySelector("form");
const board = new Board(document.querySelector("#captions"));
const timeline = new Timeline();
const delay = new Delay(live);
const recording = new Recording(session);

const profile = encodeURIComponent(query.get("cue_profile") ?? "web");
const source = new EventSource(`${session}/captions?wait=true&cue_profile=${profile}`);
for (const type of EVENTS) source.addEventListener(type, ({ data }) => take(JSON.parse(data)));
source.addEventListener("session.error", ({ data }) => say(JSON.parse(data).message));
source.addEventListener("closed", ({ data }) => {
  // Else the browser comes back by itself: to another node, or to a gateway that has started again.
  if (JSON.parse(data).code !== "session_closed") return;
  source.close();
  say("The session has ended.");
});
source.onerror = () => say(`Not connected to ${gateway}. Start a gateway with: npm start`);

if (isObs ? query.get("sound") === "on" : query.get("sound") !== "off") {
  // Chromium hears a stream in blocks of 32 KB: WAV fills them soonest, and silence between utterances fills them at all.
  const file = encodeURIComponent(query.get("audio") ?? "wav");
  live.src = `${session}/audio.${file}?wait=true&silence=true${file === "wav" ? "&rate=48000" : ""}`;
  live.play().catch(() => say("Press play to hear it."));
} else live.hidden = true;
if (!isObs) recording.run().catch((error) => say(`Nothing is recorded: ${error.message}`));

function take(event) {
  timeline.take(event, performance.now());
  board.take(event);
  if (event.type === "hello") say(`Connected to session ${name}.`);
  if (event.type !== "utterance.done" || isObs) return;
  say(`Said: ${event.outcome}.`);
  setTimeout(offerReplay, RECORDED_MS);
}

/** A browser reads a track once, and captions end with their session: it is made anew after each utterance. */
function offerReplay() {
  if (timeline.isSpeaking || !replay.paused) return;
  URL.revokeObjectURL(replay.src);
  replay.src = URL.createObjectURL(recording.blob);
  const track = document.createElement("track");
  track.kind = "captions";
  track.label = "Captions";
  track.default = true;
  track.src = `${session}/captions.vtt?live=false&cue_profile=${profile}&origin_ms=${recording.startMs}`;
  replay.replaceChildren(track);
  replay.closest("section").hidden = false;
}

async function post(what, body) {
  try {
    const answer = await fetch(`${session}/${what}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) say((await answer.json()).error.message);
  } catch {
    say(`Can't reach ${gateway}.`);
  }
}
form.onsubmit = (event) => {
  event.preventDefault();
  if (live.src !== "" && live.paused) live.play().catch((error) => say(error.message));
  post("speak", { text: form.elements.text.value });
};
form.elements.stop.onclick = () => post("interrupt", {});

function frame(nowMs) {
  const placeMs = timeline.at(nowMs - delay.at(nowMs));
  // For whoever wants to follow the words: what lights up, and which place is heard at that moment.
  board.draw(placeMs, nowMs, (word) =>
    dispatchEvent(new CustomEvent("word", { detail: { ...word, placeMs } })),
  );
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);

function say(text) {
  status.textContent = text;
}
