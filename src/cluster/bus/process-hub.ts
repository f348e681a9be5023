/** Lets a child process use a bus of this one: each message of its `ProcessBus` is carried out here. */
import type { Duplex } from "node:stream";
import { GatewayError } from "../../errors.ts";
import type { Bus, BusHandle, KeyTable } from "./bus.ts";
import {
  type FromHub,
  fromWireError,
  type HubCall,
  ProcessWire,
  type ToHub,
  toWireError,
} from "./process-wire.ts";

export interface ProcessHubOptions {
  /** The child's own: it is closed with the child. */
  readonly bus: Bus;
  readonly stream: Duplex;
  /** More than `MAX_UNREAD_BYTES` wait for the child: it does not read. Once; nothing is sent to it any more. */
  readonly onStuck: () => void;
}

/** The relay between two workers keeps less than that; whoever does not read it hangs. */
export const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/** The handle ends it from here; the child's end does so, too. */
export function serveBus({ bus, stream, onStuck }: ProcessHubOptions): BusHandle {
  const handles = new Map<number, BusHandle>();
  const questions = new Map<number, Question>();
  let nextQuestion = 1;
  let isOver = false;
  const close = (): void => {
    if (isOver) return;
    isOver = true;
    for (const { reject } of questions.values()) reject(gone());
    questions.clear();
    wire.end();
    // Behind the answers to those who wait.
    setImmediate(() => void bus.close());
  };
  const wire: ProcessWire<ToHub, FromHub> = new ProcessWire(stream, (message) => take(message), close);
  const send = (message: FromHub): void => {
    if (isOver) return;
    wire.send(message);
    if (wire.waitingBytes <= MAX_UNREAD_BYTES) return;
    close();
    onStuck();
  };
  bus.onState((state) => send({ kind: "state", state }));

  const ask = (id: number, bytes: Uint8Array): Promise<Uint8Array> =>
    new Promise((resolve, reject) => {
      if (isOver) {
        reject(gone());
        return;
      }
      const question = nextQuestion++;
      questions.set(question, { resolve, reject });
      send({ kind: "asked", id, question, bytes });
    });

  const carryOut = (id: number, call: HubCall): Promise<unknown> => {
    switch (call.name) {
      case "request":
        return bus.request(call.subject, call.bytes, call);
      case "subscribe":
        return bus.subscribe(call.subject, (bytes) => send({ kind: "heard", id, bytes }));
      case "answer":
        return bus.answer(call.subject, (bytes) => ask(id, bytes));
      case "close":
        return bus.close();
      case "watch":
        return bus[call.table].watch(call.prefix, (change) => send({ kind: "changed", id, change }));
      default:
        return carryOutAt(bus[call.table], call);
    }
  };

  /** What can't be sent is lost, as it may be on any bus: whoever has to know of it numbers its messages. */
  const publish = (subject: string, bytes: Uint8Array): void => {
    try {
      bus.publish(subject, bytes);
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown;
    }
  };

  const take = (message: ToHub): void => {
    switch (message.kind) {
      case "call": {
        const { id, call } = message;
        carryOut(id, call).then(
          (value) => {
            const isHandle = call.name === "subscribe" || call.name === "answer" || call.name === "watch";
            if (isHandle) handles.set(id, value as BusHandle);
            send({ kind: "result", id, value: isHandle ? null : value });
          },
          (thrown: unknown) => send({ kind: "error", id, error: toWireError(thrown) }),
        );
        return;
      }
      case "publish":
        publish(message.subject, message.bytes);
        return;
      case "answer": {
        const { question, reply } = message;
        const asked = questions.get(question);
        questions.delete(question);
        if (reply instanceof Uint8Array) asked?.resolve(reply);
        else asked?.reject(fromWireError(reply));
        return;
      }
      case "end":
        handles.get(message.id)?.close();
        handles.delete(message.id);
    }
  };
  return { close };
}

interface Question {
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (error: GatewayError) => void;
}

function gone(): GatewayError {
  return new GatewayError("bus_no_answer", "The process that answers has ended");
}

type TableCall = Extract<HubCall, { readonly name: "claim" | "takeOver" | "renew" | "release" | "find" }>;

function carryOutAt(table: KeyTable, call: TableCall): Promise<unknown> {
  switch (call.name) {
    case "claim":
      return table.claim(call.key, call.value);
    case "takeOver":
      return table.takeOver(call.entry, call.value);
    case "renew":
      return table.renew(call.entry, call.value);
    case "release":
      return table.release(call.entry);
    case "find":
      return table.find(call.key);
  }
}
