/** Reads an event as a client gets it, and throws where it is not what its schema says. */
import { EVENTS, type Event } from "../../src/protocol/events.ts";

export function checkedEvent(json: string): Event {
  const value = JSON.parse(json) as Event;
  const schema = EVENTS[value.type];
  if (schema === undefined)
    throw new Error(`Expected an event that has a schema, got the type ${value.type}`);
  const { error } = schema.safeParse(value);
  if (error !== undefined) {
    const where = "its schema is in src/protocol/events.ts";
    throw new Error(`Event ${value.type} is not what its schema says (${where}): ${error.message}\n${json}`);
  }
  return value;
}
