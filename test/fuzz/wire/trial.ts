/** Sends some connections of a crowd again, and says whether the gateway breaks. */
import type { Selection } from "./connection-script.ts";
import { Crowd, mustAnswer } from "./crowd.ts";
import type { FuzzedGateway } from "./fuzzed-gateway.ts";
import type { Trial } from "./narrow.ts";
import { internals } from "./surface-run.ts";
import type { Surface } from "./surfaces.ts";

/** What was sent is handled behind it, and a fault written down: a look each so many ms, and at least two. */
const LOOK_MS = 250;
const LOOKS = 40;

export interface TrialOptions {
  readonly gateway: FuzzedGateway;
  readonly surface: Surface;
  readonly seed: number;
  readonly atOnce: number;
}

export async function tryAgain(options: TrialOptions, selections: readonly Selection[]): Promise<Trial> {
  const { gateway, atOnce } = options;
  const crowd = new Crowd(options);
  const counts: number[] = [];
  let next = 0;
  const client = async (): Promise<void> => {
    for (let at = next++; at < selections.length && gateway.process.isAlive; at = next++) {
      const selection = selections[at];
      if (selection !== undefined) counts[at] = await crowd.again(selection);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  return { isBroken: crowd.faults.length > 0 || (await isBehindBroken(gateway)), counts };
}

async function isBehindBroken(gateway: FuzzedGateway): Promise<boolean> {
  for (let looks = 0; looks < LOOKS; looks += 1) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    if ((await isUnwell(gateway)) || (await mustAnswer(gateway.url)) !== null) return true;
    const waiting = await gateway.metric("voicewire_received_bytes");
    if (looks > 0 && !(waiting > 0)) break;
  }
  return await isUnwell(gateway);
}

async function isUnwell(gateway: FuzzedGateway): Promise<boolean> {
  const { isAlive, faults } = gateway.process;
  return !isAlive || faults.length > 0 || (await internals(gateway)) > 0;
}
