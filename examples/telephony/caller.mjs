// A caller as Twilio would bring it: asks what to do with the call, connects its media stream, plays what it is sent,
// echoes marks when they are played, and presses keys. Everything is on this machine.
import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import WebSocket from "ws";

const BYTES_PER_MS = 8;
const FRAME_MS = 20;
const SILENCE = Buffer.alloc(FRAME_MS * BYTES_PER_MS, 0xff).toString("base64");

const id = (prefix) => prefix + randomBytes(16).toString("hex");

/** `keys`: what is pressed, each so long after speech has begun (again). Resolves when the call is over. `headers`: of its stream. */
export async function callLikeTwilio(answerUrl, { keys, headers = {} }) {
  const callSid = id("CA");
  const body = new URLSearchParams({ CallSid: callSid, From: "+15550100", To: "+15550199" });
  const twiml = await (await fetch(answerUrl, { method: "POST", body })).text();
  const url = /<Stream url="([^"]+)"/.exec(twiml)?.[1];
  const session = /<Parameter name="session" value="([^"]+)"/.exec(twiml)?.[1];
  if (url === undefined || session === undefined) throw new Error(`Not connected to a stream: ${twiml}`);
  return streamLikeTwilio(url, { callSid, session, keys, headers });
}

/** The media stream of a call. `onPlayed`: each 20 ms, how much speech was played by then, ms. */
export async function streamLikeTwilio(
  url,
  { session, callSid = id("CA"), headers = {}, keys = [], onPlayed = () => undefined },
) {
  const streamSid = id("MZ");
  const socket = new WebSocket(url, { headers });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  let sequence = 0;
  const send = (message) =>
    socket.send(JSON.stringify({ sequenceNumber: String(++sequence), streamSid, ...message }));

  // What waits to be played: numbers of bytes, and names of marks.
  let queue = [];
  let heardBytes = 0;
  let clears = 0;
  let chunk = 0;
  let isSpeaking = false;
  let beganSpeaking = () => undefined;
  const isOver = new Promise((resolve) =>
    socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() })),
  );
  const play = () => {
    let left = FRAME_MS * BYTES_PER_MS;
    while (queue.length > 0) {
      if (typeof queue[0] === "string") send({ event: "mark", mark: { name: queue.shift() } });
      else if (left === 0) break;
      else {
        const played = Math.min(left, queue[0]);
        heardBytes += played;
        left -= played;
        queue[0] -= played;
        if (queue[0] === 0) queue.shift();
        if (!isSpeaking) beganSpeaking();
        isSpeaking = true;
      }
    }
    send({
      event: "media",
      media: {
        track: "inbound",
        chunk: String(++chunk),
        timestamp: String(chunk * FRAME_MS),
        payload: SILENCE,
      },
    });
    onPlayed(heardBytes / BYTES_PER_MS);
  };
  socket.on("message", (data) => {
    const message = JSON.parse(data.toString());
    if (message.event === "media") queue.push(Buffer.from(message.media.payload, "base64").length);
    else if (message.event === "mark") queue.push(message.mark.name);
    else if (message.event === "clear") {
      // Twilio echoes the marks of what was never played, too.
      for (const name of queue.filter((item) => typeof item === "string"))
        send({ event: "mark", mark: { name } });
      queue = [];
      clears += 1;
      isSpeaking = false;
    } else throw new Error(`Twilio would refuse this: ${message.event}`);
  });

  socket.send(JSON.stringify({ event: "connected", protocol: "Call", version: "1.0.0" }));
  send({
    event: "start",
    start: {
      streamSid,
      accountSid: id("AC"),
      callSid,
      tracks: ["inbound"],
      customParameters: { session },
      mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
    },
  });
  const player = setInterval(play, FRAME_MS);
  socket.once("close", () => clearInterval(player));
  for (const { digit, afterMs } of keys) {
    if (!isSpeaking) await Promise.race([isOver, new Promise((resolve) => (beganSpeaking = resolve))]);
    await wait(afterMs);
    if (socket.readyState !== WebSocket.OPEN) break;
    isSpeaking = false;
    send({ event: "dtmf", dtmf: { track: "inbound_track", digit } });
  }
  const end = await isOver;
  return { heardMs: heardBytes / BYTES_PER_MS, clears, ...end };
}
