/** Two nodes that say something to each other over a bus that loses messages. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readRelayMessage } from "../../src/cluster/relay/relay-format.ts";
import { RelayLink, relayLost } from "../../src/cluster/relay/relay-link.ts";

const UUID = "aaaaaaaa-0000-4000-8000-000000000000";

/** One node's side. What it sends lies in `sent` until it is carried to the other. */
class Side {
  readonly sent: Uint8Array[] = [];
  /** Its own clients at the other node, and the other's clients here. */
  readonly arrived = new Set<number>();
  readonly hosted = new Set<number>();
  losses = 0;
  isCut = false;
  readonly link: RelayLink;
  #next = 1;

  constructor(generation = 0) {
    this.link = new RelayLink({
      from: UUID,
      generation,
      publish: (bytes) => {
        if (this.isCut) throw relayLost("the bus is lost");
        this.sent.push(bytes);
      },
      maxMessageBytes: 100_000,
      windowBytes: 100_000,
      onRecord: (record) => {
        if (record.kind === "open") this.hosted.add(record.connection);
      },
      onRoom: () => undefined,
      onLost: () => {
        this.losses += 1;
        this.arrived.clear();
        this.hosted.clear();
      },
    });
  }

  /** As a node does each second. */
  look(): void {
    this.link.breakSilence(this.arrived.size + this.hosted.size > 0);
  }

  open(): void {
    const connection = this.#next++;
    this.arrived.add(connection);
    this.link.write((writer) => writer.open(connection, {}));
    this.link.flush();
  }
}

function carry(from: Side, to: Side, isLost = false): void {
  const bytes = from.sent.shift();
  const message = bytes === undefined ? undefined : readRelayMessage(bytes);
  if (bytes !== undefined && message !== undefined && !isLost) to.link.read(message, bytes.length);
}

/** All that is under way comes, and all that is said to it. */
function settle(one: Side, two: Side): void {
  for (let messages = 0; one.sent.length + two.sent.length > 0; messages += 1) {
    if (messages > 1000) throw new Error("They never come to an end");
    carry(one, two);
    carry(two, one);
  }
}

const NUMBERS = (side: Side): number[] => [...side.arrived];
const STEP = fc.constantFrom("open", "carry", "lose", "fail", "cut", "heal");
const STEPS = fc.array(fc.tuple(fc.boolean(), STEP), { maxLength: 40 });

describe("a link between two nodes", () => {
  it("both agree on who is connected, whatever is lost and in whatever order they notice", () => {
    fc.assert(
      fc.property(fc.nat(2), STEPS, (generation, steps) => {
        const [one, two] = [new Side(), new Side(generation)];
        for (const [isOne, step] of steps) {
          const [from, to] = isOne ? [one, two] : [two, one];
          if (step === "open") from.open();
          else if (step === "cut" || step === "heal") from.isCut = step === "cut";
          else if (step === "fail") from.link.lose(relayLost("the bus is lost"));
          else carry(from, to, step === "lose");
        }
        // From here on nothing is lost, and nobody speaks.
        for (const side of [one, two]) side.isCut = false;
        settle(one, two);
        for (let look = 0; look < 4; look += 1) {
          for (const side of [one, two]) side.look();
          settle(one, two);
        }
        expect([...two.hosted]).toEqual(NUMBERS(one));
        expect([...one.hosted]).toEqual(NUMBERS(two));
        for (let round = 0; round < 2; round += 1) {
          one.open();
          two.open();
          settle(one, two);
        }
        const lossesBefore = [one.losses, two.losses];
        one.open();
        two.open();
        settle(one, two);
        expect([...two.hosted]).toEqual(NUMBERS(one));
        expect([...one.hosted]).toEqual(NUMBERS(two));
        expect(one.link.generation).toBe(two.link.generation);
        expect([one.losses, two.losses]).toEqual(lossesBefore);
        for (const { link } of [one, two]) link.close();
      }),
      { numRuns: 2000 },
    );
  });

  it("two that begin in the same moment lose nothing", () => {
    const [one, two] = [new Side(), new Side()];
    one.open();
    two.open();
    settle(one, two);
    expect([one.losses, two.losses]).toEqual([0, 0]);
    for (const { link } of [one, two]) link.close();
  });

  it("a node that kept its generation takes the older one of a node that restarts the link", () => {
    const [one, two] = [new Side(), new Side(7)];
    one.open();
    settle(one, two);
    two.open();
    settle(one, two);
    expect([...two.hosted]).toEqual(NUMBERS(one));
    expect([...one.hosted]).toEqual(NUMBERS(two));
    expect([one.losses, two.hosted.size]).toEqual([0, 1]);
    for (const { link } of [one, two]) link.close();
  });

  it("what was under way when one lost the bus keeps no client that has gone", () => {
    const [one, two] = [new Side(), new Side()];
    two.open();
    two.isCut = true;
    two.open();
    two.isCut = false;
    settle(one, two);
    for (let look = 0; look < 2; look += 1) {
      for (const side of [one, two]) side.look();
      settle(one, two);
    }
    expect([...one.hosted]).toEqual([]);
    for (const { link } of [one, two]) link.close();
  });

  it("a node that has missed the other's first messages costs each of them one loss", () => {
    const [one, two] = [new Side(), new Side()];
    for (let count = 0; count < 5; count += 1) one.open();
    carry(one, two, true);
    carry(one, two, true);
    two.open();
    settle(one, two);
    one.open();
    settle(one, two);
    expect([one.losses, two.losses]).toEqual([1, 1]);
    expect([...two.hosted]).toEqual(NUMBERS(one));
    for (const { link } of [one, two]) link.close();
  });
});
