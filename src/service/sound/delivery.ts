/** Carries a sound to the client as it is made, no faster than the client takes it. */
import type { Outlet } from "../http/speech/delivery.ts";
import { soundBytes } from "./bytes.ts";
import type { SoundPlan } from "./plan.ts";
import type { Place } from "./queue.ts";

/** Bytes gathered before a write: a response of a few large pieces rather than of thousands. */
const WRITE_BYTES = 8192;
/** How long a client may take nothing before it is given up. */
const STALL_MS = 60_000;

interface SoundDelivery {
  readonly plan: SoundPlan;
  /** One of STREAM_FORMATS. */
  readonly outputFormat: string;
  readonly response: Outlet;
  /** Sent with the first bytes. */
  readonly headers: Readonly<Record<string, string>>;
  /** Called when all is made and taken, before the client sees the end. */
  readonly onMade: () => void;
  /** Left when the delivery is over, whatever ends it; lent to others while the client is waited for. */
  readonly place: Place;
}

/** Resolves when all is written or the client has gone. Rejects with GatewayError only while nothing has been sent. */
export async function deliverSound(delivery: SoundDelivery): Promise<void> {
  const { plan, outputFormat, response, headers, place, onMade } = delivery;
  const leave = () => place.leave();
  response.once("close", leave);
  try {
    if (response.destroyed) return;
    await place.resume();
    const isWanted = () => !response.destroyed;
    for await (const piece of gathered(soundBytes(plan, { outputFormat, isWanted }))) {
      if (response.destroyed) return;
      if (!response.headersSent) response.writeHead(200, headers);
      if (response.write(piece)) continue;
      place.pause();
      await drained(response);
      if (response.destroyed) return;
      await place.resume();
    }
    if (response.destroyed) return;
    onMade();
    response.end();
  } catch (thrown) {
    if (!response.headersSent) throw thrown;
    // Too late for an error body: a cut connection tells the client that the audio is not whole.
    response.destroy();
  } finally {
    response.off("close", leave);
    leave();
  }
}

/** The same bytes in pieces of at least WRITE_BYTES, but for the last. */
async function* gathered(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of source) {
    parts.push(part);
    size += part.length;
    if (size < WRITE_BYTES) continue;
    yield Buffer.concat(parts, size);
    parts = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(parts, size);
}

/** Resolves when the client takes more, or is gone; one that takes nothing for STALL_MS is given up. */
function drained(response: Outlet): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      clearTimeout(timer);
      response.off("drain", settle);
      response.off("close", settle);
      resolve();
    };
    const timer = setTimeout(() => {
      response.destroy();
      settle();
    }, STALL_MS);
    response.once("drain", settle);
    response.once("close", settle);
    if (response.destroyed) settle();
  });
}
