/**
 * Clients of other nodes that this node lost when it was cut off from them. The others go on with its sessions, so one of
 * those clients that comes here meanwhile would hear words here that it hears again when the nodes meet.
 */
import type { LiveCluster } from "../../cluster/cluster.ts";
import { movedAway } from "../../cluster/come-back.ts";
import type { Participant } from "../../session/connections/participant.ts";

export class LostClients {
  readonly #cluster: Pick<LiveCluster, "isCutOff"> | null;
  /** Their resume tokens; no more than this node had connections when it was cut off. */
  readonly #tokens = new Set<string>();

  constructor(cluster: Pick<LiveCluster, "isCutOff"> | null) {
    this.#cluster = cluster;
  }

  /** A client has left its session. */
  left({ listener, returnToken }: Participant): void {
    if (this.#cluster?.isCutOff === true && listener.surface === "other node") this.#tokens.add(returnToken);
  }

  /** Throws bus_lost where the client has to go on at another node, which it finds when it tries again. */
  check(resumeToken: string): void {
    if (this.#tokens.size === 0) return;
    if (this.#cluster?.isCutOff !== true) this.#tokens.clear();
    else if (this.#tokens.has(resumeToken)) throw movedAway();
  }
}
