/** Finds the one message that breaks a surface: suspects are sent again, fewer each time, to a gateway that is new each time. */
import type { Selection } from "./connection-script.ts";

/** Whether these break a gateway, and how many messages each connection has made. */
export interface Trial {
  readonly isBroken: boolean;
  readonly counts: readonly number[];
}

export interface Narrowing {
  /** Numbers of connections. */
  readonly suspects: readonly number[];
  /** Sends these to a new gateway. */
  readonly tried: (selections: readonly Selection[]) => Promise<Trial>;
}

/** The fewest that it was found in; null where it does not break again. */
export async function narrowed({ suspects, tried }: Narrowing): Promise<Selection[] | null> {
  const whole = (connections: readonly number[]): Selection[] =>
    connections.map((connection) => ({ connection, messages: null }));
  if (!(await tried(whole(suspects))).isBroken) return null;
  const connections = await halved(suspects, async (some) => (await tried(whole(some))).isBroken);
  const [connection] = connections;
  if (connection === undefined || connections.length > 1) return whole(connections);
  const { counts } = await tried(whole(connections));
  const all = Array.from({ length: counts[0] ?? 0 }, (_, number) => number);
  const isBroken = async (messages: readonly number[]): Promise<boolean> =>
    (await tried([{ connection, messages }])).isBroken;
  return [{ connection, messages: await halved(all, isBroken) }];
}

/** Takes away halves, then quarters and so on, as long as what is left breaks it. */
async function halved(
  all: readonly number[],
  isBroken: (some: readonly number[]) => Promise<boolean>,
): Promise<readonly number[]> {
  let left = all;
  for (let size = Math.ceil(left.length / 2); left.length > 1; size = Math.ceil(size / 2)) {
    for (let at = 0; at < left.length && left.length > 1; ) {
      const fewer = [...left.slice(0, at), ...left.slice(at + size)];
      if (fewer.length > 0 && (await isBroken(fewer))) left = fewer;
      else at += size;
    }
    if (size === 1) break;
  }
  return left;
}
