// A phone call that listens to a session, as Twilio would bring it, and says each second how much speech it has played:
//
//   VOICEWIRE_KEY=vwk_... VOICEWIRE_URL=ws://127.0.0.1:8082 node examples/telephony/listen.mjs demo
//
// Ctrl+C hangs up. docs/deploy.md kills gateways under it.
import { streamLikeTwilio } from "./caller.mjs";

const gatewayUrl = (process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080").replace(/^http/, "ws");
const key = process.env.VOICEWIRE_KEY;
const session = process.argv[2] ?? "demo";
const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };

let playedMs = 0;
let saidMs = 0;
const report = setInterval(() => {
  const isSilent = playedMs === saidMs;
  console.log(`${(playedMs / 1000).toFixed(1).padStart(6)} s of speech${isSilent ? ", silence now" : ""}`);
  saidMs = playedMs;
}, 1000);
try {
  const onPlayed = (ms) => {
    playedMs = ms;
  };
  const { code, reason } = await streamLikeTwilio(`${gatewayUrl}/carrier/twilio`, {
    session,
    headers,
    onPlayed,
  });
  console.log(`The call is over: ${code} ${reason}`);
} catch (error) {
  console.error(`The call failed: ${error.message}`);
  process.exitCode = 1;
} finally {
  clearInterval(report);
}
