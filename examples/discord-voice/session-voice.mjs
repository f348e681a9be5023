// A session of the gateway, heard in a voice connection: packets as they are due, and word of what was played, so that a
// receipt says what Discord has got and not what was sent here.
import { once } from "node:events";
import WebSocket from "ws";
import { PacketPacer } from "./packet-pacer.mjs";

const PACKET_MS = 20;
/** `played` is said after so many packets, and after the last one. */
const PACKETS_PER_WORD = 5;

/**
 * Joins `session` of the gateway at `gateway` (ws://HOST:PORT); `sink` as for PacketPacer. `onEvent` gets every event:
 * see docs/protocol.md. Rejects where there is no gateway.
 *
 * Resolves with `send(command)`, `close()`, and `closed`, a promise of the close code.
 */
export async function joinSession({ gateway, session, sink, onEvent = () => undefined }) {
  const query = "format=opus_48000&frame_ms=20&events=words";
  const socket = new WebSocket(`${gateway}/live/${encodeURIComponent(session)}?${query}`);
  // Where the next packet stands on the session's timeline.
  let nextMs = 0;
  let packetsUntold = 0;

  const send = (command) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
  };
  const pacer = new PacketPacer(sink, (endMs, isLast) => {
    packetsUntold += 1;
    if (packetsUntold < PACKETS_PER_WORD && !isLast) return;
    packetsUntold = 0;
    send({ type: "played", at_ms: endMs });
  });
  const take = (event) => {
    if (event.type === "hello") nextMs = event.audio.start_ms;
    else if (event.type === "gap") nextMs += event.ms;
    else if (event.type === "interrupted") {
      pacer.cut();
      nextMs = event.next_ms ?? nextMs;
    }
    onEvent(event);
  };

  socket.on("message", (data, isBinary) => {
    if (!isBinary) return take(JSON.parse(data.toString()));
    nextMs += PACKET_MS;
    pacer.push(data, nextMs);
  });
  const closed = new Promise((resolve) => {
    // What came before is played to its end.
    socket.once("close", (code) => resolve(code));
  });
  await once(socket, "open");
  // What breaks later is seen as a close.
  socket.on("error", () => socket.terminate());
  return {
    send,
    closed,
    close: () => {
      pacer.close();
      socket.close();
    },
  };
}
