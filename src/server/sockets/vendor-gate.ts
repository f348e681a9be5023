/**
 * A vendor socket between its client and the door. The client's key comes with the handshake or with the first message, as
 * the vendor has it. Until then there is nothing behind it: no context, no request, and a deadline.
 */
import { AccessError } from "../../access/access-error.ts";
import type { Caller } from "../../access/caller.ts";
import { claimAt, type Door, identifyAt } from "../../access/door.ts";
import { toGatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { messageCredentials } from "../../protocol/elevenlabs/message-json.ts";
import type { Dialect } from "../../protocol/elevenlabs/server-messages.ts";
import {
  closeReason,
  faultOf,
  missingKey,
  type SocketFault,
} from "../../protocol/elevenlabs/socket-faults.ts";
import type { SocketPort, VendorSocket } from "../../vendor-sockets/ports.ts";
import { presentedIn } from "../credential.ts";
import { LeasedSocket, type SocketSource, type SpeakingRights } from "./leased-socket.ts";
import type { HoldMessages } from "./message-sockets.ts";

/** For the first message of a client that showed nothing before, ms. */
const FIRST_MESSAGE_MS = 5000;

export interface VendorGateOptions {
  readonly door: Door;
  readonly clock: Clock;
  readonly port: SocketPort;
  /** While the other nodes are asked about a single-use token. */
  readonly hold: HoldMessages;
  readonly dialect: Dialect;
  readonly source: SocketSource;
  /** Who was let in by the handshake; null: nobody yet. */
  readonly caller: Caller | null;
  readonly rightsOf: (caller: Caller) => SpeakingRights;
  /** It waits for its first message no more. Called once or more. */
  readonly onKnown: () => void;
}

export class VendorGate implements VendorSocket {
  readonly #options: VendorGateOptions;
  #socket: LeasedSocket | null = null;
  /** For the first message. */
  #timer: Timer | null = null;
  #isOver = false;

  constructor(options: VendorGateOptions) {
    this.#options = options;
    const { caller, clock } = options;
    if (caller !== null) this.#greet(caller);
    else this.#timer = clock.at(clock.nowMs() + FIRST_MESSAGE_MS, () => this.#endWithoutKey());
  }

  receive(json: string): void {
    if (this.#isOver) return;
    const claim = this.#socket === null ? this.#claim(json) : null;
    if (claim === null) {
      this.#receive(json);
      return;
    }
    const goOn = this.#options.hold();
    claim.then(
      (letGo) => {
        goOn(() => this.#receive(json));
        letGo();
      },
      (thrown: unknown) => {
        const { door, source } = this.#options;
        door.audit.refused({ ...source, thrown, caller: null });
        goOn(() => this.refuse(thrown));
      },
    );
  }

  #receive(json: string): void {
    if (this.#isOver) return;
    try {
      if (this.#socket === null) this.#admit(json);
    } catch (thrown) {
      this.refuse(thrown);
      return;
    }
    this.#socket?.receive(json);
  }

  /** See claimAt. What can't be read is refused by `#admit`. */
  #claim(json: string): Promise<() => void> | null {
    const { door, source } = this.#options;
    if (!door.access.isShared) return null;
    try {
      return claimAt(source.address, presentedIn(messageCredentials(json), source.origin), door);
    } catch {
      return null;
    }
  }

  refuse(thrown: unknown): void {
    if (this.#socket === null) this.#end(faultOf(toGatewayError(thrown)));
    else this.#socket.refuse(thrown);
  }

  drained(): void {
    this.#socket?.drained();
  }

  closed(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#options.onKnown();
    this.#socket?.closed();
  }

  /** Throws where what the message shows does not hold. */
  #admit(json: string): void {
    const { door, source } = this.#options;
    let caller: Caller | null = null;
    try {
      const presented = presentedIn(messageCredentials(json), source.origin);
      if (presented.credential === "") {
        this.#endWithoutKey();
        return;
      }
      caller = identifyAt(source.address, presented, door);
      caller.must("speak");
      door.access.redeem(caller);
      this.#letIn(caller);
    } catch (thrown) {
      door.audit.refused({ ...source, thrown, caller });
      throw thrown;
    }
  }

  /** Who was let in by the handshake; the library throws away what its handlers throw. */
  #greet(caller: Caller): void {
    try {
      this.#letIn(caller);
    } catch (thrown) {
      const { door, source } = this.#options;
      door.audit.refused({ ...source, thrown, caller });
      this.refuse(thrown);
    }
  }

  /** Whose token was redeemed. Throws forbidden, connection_limit, rate_limited. */
  #letIn(caller: Caller): void {
    const { rightsOf, door, source, onKnown } = this.#options;
    try {
      this.#socket = new LeasedSocket({ door, source, caller, ...rightsOf(caller) });
    } catch (thrown) {
      door.access.giveBack(caller);
      throw thrown;
    }
    this.#timer?.cancel();
    onKnown();
  }

  /** The vendor has an error of its own for it. */
  #endWithoutKey(): void {
    const { door, source } = this.#options;
    door.audit.refused({ ...source, thrown: new AccessError("no_credential"), caller: null });
    this.#end(missingKey());
  }

  /** Ends a socket that was not let in. */
  #end(fault: SocketFault): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { port, dialect } = this.#options;
    port.send(dialect.fault(fault, ""));
    port.end(fault.code, closeReason(fault));
  }
}
