/**
 * Phone calls here whose session is at another node, and those of other nodes for sessions here. Carriers' messages are read
 * and written where the call arrived; the leg in the session is at the owner. Between them:
 *
 *   to the owner      bytes: the caller's voice    {"kind":"dtmf", ...}   {"kind":"played","name"}   {"kind":"hold"}   {"kind":"goOn"}
 *                     {"kind":"stopped","reason"}
 *   to the call       bytes: a frame each          {"kind":"joined"}   {"kind":"mark","name"}   {"kind":"flush"}   {"kind":"clear"}
 */
import { ANYBODY } from "../../access/caller.ts";
import type { LiveCluster } from "../../cluster/cluster.ts";
import type { ArrivedSocket, OwnerConnection, RelayedListener } from "../../cluster/relay/relay.ts";
import { jsonOf, type RelayItem } from "../../cluster/relay/relay-format.ts";
import type { SendResult } from "../../delivery/listener.ts";
import { toGatewayError } from "../../errors.ts";
import { NORMAL_CLOSURE } from "../../kit/close-codes.ts";
import type { Logger } from "../../kit/log.ts";
import type { Wire } from "../../protocol/carrier/carrier.ts";
import type { CallLeg, CallTerms, Greeting, LegEvent } from "../../telephony/call-leg.ts";
import type { Calls } from "../../telephony/calls.ts";
import type { FarCalls } from "../../telephony/following-leg.ts";
import { passFacts } from "../passed-facts.ts";
import type { HostedClient, TakeIn } from "./relay-host.ts";

type ToOwner =
  | Exclude<LegEvent, { readonly kind: "media" }>
  | { readonly kind: "stopped"; readonly reason: string };

type ToCall =
  | { readonly kind: "joined" | "flush" | "clear" }
  | { readonly kind: "mark"; readonly name: string };

/** What the owner has to know of a call. Who brings it was checked where it arrived. */
interface CallFacts {
  readonly terms: CallTerms;
  readonly greeting: Greeting | null;
}

export function farCalls(cluster: LiveCluster): FarCalls {
  return {
    known: (sessionId) => cluster.known(sessionId),
    place: (sessionId, asking, enter) => cluster.place(sessionId, asking, enter),
    legAt: (owner, options) => new FarLeg({ cluster, owner }, options),
  };
}

class FarLeg implements CallLeg, ArrivedSocket {
  readonly #options: Parameters<FarCalls["legAt"]>[1];
  readonly #connection: OwnerConnection;
  #isOver = false;

  /** Throws bus_lost, and what the greeting does. */
  constructor(
    { cluster, owner }: { readonly cluster: LiveCluster; readonly owner: string },
    options: Parameters<FarCalls["legAt"]>[1],
  ) {
    this.#options = options;
    const { terms, greeting } = options;
    const said = greeting();
    // What it costs is counted here, where the caller is known.
    const facts: CallFacts = { terms, greeting: said === null ? null : withoutBudget(said) };
    const { sessionId } = terms;
    const client = { sessionId, caller: ANYBODY, address: "" };
    this.#connection = cluster.connect(owner, passFacts("call", client, { ...facts }), this);
  }

  // ---- CallLeg

  take(event: LegEvent): void {
    if (this.#isOver) return;
    if (event.kind === "media") this.#connection.message({ isBinary: true, bytes: event.audio });
    else this.#say(event);
  }

  drained(): void {
    this.#connection.drained();
  }

  leave(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#say({ kind: "stopped", reason });
    this.#connection.closed(NORMAL_CLOSURE);
  }

  // ---- ArrivedSocket

  send(items: readonly RelayItem[]): SendResult {
    if (this.#isOver) return "sent";
    try {
      const wires = this.#wiresFor(items);
      if (wires.length > 0) return this.#options.line.send(wires);
    } catch (thrown) {
      const { closeCode, code } = toGatewayError(thrown);
      this.end(closeCode, code);
    }
    return this.bufferedBytes() === 0 ? "sent" : "buffered";
  }

  bufferedBytes(): number {
    return this.#isOver ? 0 : this.#options.line.bufferedBytes();
  }

  end(closeCode: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#connection.closed(closeCode);
    this.#options.onEnd(closeCode, reason);
  }

  /** In the carrier's words. */
  #wiresFor(items: readonly RelayItem[]): readonly Wire[] {
    const { codec } = this.#options;
    const wires: Wire[] = [];
    let frames: Uint8Array[] = [];
    for (const { isBinary, bytes } of items) {
      if (isBinary) {
        frames.push(bytes);
        continue;
      }
      if (frames.length > 0) wires.push(...codec.audio(frames));
      frames = [];
      wires.push(...this.#wiresOf(jsonOf(bytes) as ToCall | undefined));
    }
    if (frames.length > 0) wires.push(...codec.audio(frames));
    return wires;
  }

  #wiresOf(said: ToCall | undefined): readonly Wire[] {
    const { codec, onJoined } = this.#options;
    switch (said?.kind) {
      case "joined":
        onJoined();
        return [];
      case "mark": {
        const mark = codec.mark(said.name);
        return mark === null ? [] : [mark];
      }
      case "flush":
        return codec.flush();
      case "clear":
        return codec.clear();
      default:
        return [];
    }
  }

  #say(message: ToOwner): void {
    this.#connection.message({ isBinary: false, bytes: Buffer.from(JSON.stringify(message)) });
  }
}

/** Calls of other nodes, into sessions of this one. */
export function takeInCalls(calls: Calls, log: Logger): TakeIn {
  return ({ more }, listener) => {
    const facts = readFacts(more);
    return facts === undefined ? undefined : hostedCall(facts, listener, { calls, log });
  };
}

/** undefined: its session does not take it, and the call has the error. */
function hostedCall(
  { terms, greeting }: CallFacts,
  listener: RelayedListener,
  { calls, log }: { readonly calls: Calls; readonly log: Logger },
): HostedClient | undefined {
  const said = (message: ToCall): string => JSON.stringify(message);
  let leg: CallLeg | null = null;
  try {
    leg = calls.legHere({
      terms,
      codec: {
        audio: (frames) => frames,
        mark: (name) => said({ kind: "mark", name }),
        flush: () => [said({ kind: "flush" })],
        clear: () => [said({ kind: "clear" })],
      },
      line: listener,
      greeting: () => greeting,
      onEnd: (closeCode, reason) => {
        leg?.leave(reason);
        listener.end(closeCode, reason);
      },
    });
  } catch (thrown) {
    const { closeCode, code } = toGatewayError(thrown);
    // Its node has heard of the session's next owner later than this one: the call looks for it again by itself.
    const level = code === "bus_lost" ? "debug" : "warn";
    log[level]({ session: terms.sessionId, code }, "Call of another node refused");
    listener.end(closeCode, code);
    return undefined;
  }
  listener.send([said({ kind: "joined" })]);
  return new HostedCall(leg, listener);
}

class HostedCall implements HostedClient {
  readonly #leg: CallLeg;
  readonly #listener: RelayedListener;

  constructor(leg: CallLeg, listener: RelayedListener) {
    this.#leg = leg;
    this.#listener = listener;
  }

  message({ isBinary, bytes }: RelayItem): void {
    try {
      if (isBinary) this.#leg.take({ kind: "media", audio: bytes });
      else this.#said(jsonOf(bytes) as ToOwner | undefined);
    } catch (thrown) {
      const { closeCode, code } = toGatewayError(thrown);
      this.#leg.leave(code);
      this.#listener.end(closeCode, code);
    }
  }

  drained(): void {
    this.#leg.drained();
  }

  closed(): void {
    this.#leg.leave("connection lost");
  }

  #said(event: ToOwner | undefined): void {
    if (event?.kind === "stopped") this.#leg.leave(event.reason);
    else if (event !== undefined) this.#leg.take(event);
  }
}

/** undefined: they are none. */
function readFacts({ terms, greeting }: Readonly<Record<string, unknown>>): CallFacts | undefined {
  if (typeof terms !== "object" || terms === null || !("sessionId" in terms)) return undefined;
  if (typeof greeting !== "object") return undefined;
  return { terms: terms as CallTerms, greeting: greeting === null ? null : greetingOf(greeting as Greeting) };
}

function withoutBudget({ command, subject }: Greeting): Greeting {
  return subject === undefined ? { command } : { command, subject };
}

function greetingOf({ command, subject }: Greeting): Greeting {
  if (subject === undefined) return { command };
  // JSON has no Infinity, and says null for it.
  const maxPlaces: number | null = subject.maxPlaces;
  return { command, subject: { ...subject, maxPlaces: maxPlaces ?? Number.POSITIVE_INFINITY } };
}
