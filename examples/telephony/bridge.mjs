// A phone line that speaks: answers calls, says what key was pressed, and tells what the caller has really heard.
//
//   node examples/telephony/bridge.mjs --simulate      a whole call with a scripted caller, nothing else needed
//   node examples/telephony/bridge.mjs                 waits for a real carrier: see README.md beside this file
//
// The carrier asks POST /answer what to do with a call and gets TwiML that connects it to the gateway, with the name of a
// session. This program holds one socket to that session: it speaks, hears keys, interrupts, hangs up.
import { createServer } from "node:http";
import WebSocket from "ws";
import { DATA_HEADERS } from "../lib/page-headers.mjs";
import { callLikeTwilio } from "./caller.mjs";

/** Where the gateway is for this program, and for the carrier. */
const gatewayUrl = process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080";
const publicUrl = process.env.PUBLIC_URL ?? gatewayUrl;
const port = Number(process.env.PORT ?? 0);
/** A gateway that others reach has keys, or strangers would hear the calls. */
const key = process.env.VOICEWIRE_KEY;
const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };

function log(callSid, what) {
  console.log(`${callSid.slice(0, 6)}  ${what}`);
}

/** One call: opened when the carrier asks, closed when the call is over. */
function answer(callSid) {
  const session = `call-${callSid}`;
  const socket = new WebSocket(`${gatewayUrl}/live/${session}?role=speaker&events=call,dtmf`, { headers });
  const send = (message) => socket.send(JSON.stringify(message));
  let isLeaving = false;
  const on = {
    call(event) {
      log(callSid, `call ${event.state}`);
      if (event.state === "ended") socket.close();
      else
        send({
          type: "speak",
          text: "Hello. This is a voice that stops when you press a key. Press nine to hang up, or any other key to hear which one it was.",
        });
    },
    dtmf({ digit }) {
      if (isLeaving) return;
      isLeaving = digit === "9";
      send({ type: "interrupt" });
      send({ type: "speak", text: isLeaving ? "Goodbye." : `You have pressed ${digit}. What else?` });
    },
    interrupted({ heard }) {
      log(callSid, `heard "${heard.text}" (${Math.round(heard.ms)} ms, by ${heard.source})`);
    },
    "utterance.done"({ outcome }) {
      if (isLeaving && outcome === "done") send({ type: "hangup" });
    },
    error(event) {
      // A key may come when nothing is being said.
      if (event.code === "nothing_to_interrupt") return;
      log(callSid, `${event.code}: ${event.message}`);
      if (!isLeaving) send({ type: "hangup" });
      isLeaving = true;
    },
  };
  socket.on("message", (data, isBinary) => {
    if (isBinary) return;
    const event = JSON.parse(data.toString());
    on[event.type]?.(event);
  });
  socket.on("error", (error) => {
    console.error(`Can't reach the gateway: ${error.message}. Start one with: npm start`);
    process.exitCode = 1;
  });
  const stream = `${publicUrl}/carrier/twilio`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<Response><Connect><Stream url="${stream}"><Parameter name="session" value="${session}"/></Stream></Connect></Response>`;
}

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const callSid = new URLSearchParams(Buffer.concat(parts).toString()).get("CallSid") ?? "";
    const isCall = request.method === "POST" && request.url === "/answer" && /^CA[0-9a-f]{32}$/.test(callSid);
    response.writeHead(isCall ? 200 : 404, { ...DATA_HEADERS, "content-type": "text/xml" });
    response.end(isCall ? answer(callSid) : "");
  });
});

server.listen(port, async () => {
  const answerUrl = `http://127.0.0.1:${server.address().port}/answer`;
  if (!process.argv.includes("--simulate")) {
    console.log(`Calls are answered at ${answerUrl}: let your carrier reach it, and ${publicUrl}`);
    return;
  }
  try {
    const keys = [
      { digit: "5", afterMs: 1800 },
      { digit: "9", afterMs: 1500 },
    ];
    const call = await callLikeTwilio(answerUrl, { keys, headers });
    console.log(
      `The caller has heard ${Math.round(call.heardMs)} ms of speech; ${call.clears} times it was cut off.`,
    );
  } catch (error) {
    console.error(`The call failed: ${error.message}`);
    process.exitCode = 1;
  }
  server.close();
});
