/** How often a watcher is sent something, on a clock that the test turns. */
import type { WebSocket } from "uWebSockets.js";
import { expect, it } from "vitest";
import { ANYBODY } from "../../../../src/access/caller.ts";
import type { LiveMessage, LiveView } from "../../../../src/protocol/live-view.ts";
import { type Arrived, Watcher } from "../../../../src/server/live-view/watcher.ts";
import { FakeClock } from "../../../helpers/fake-clock.ts";
import { OPEN_DOOR } from "../../../helpers/open-door.ts";

const EMPTY: LiveView = {
  nodes: [],
  other_nodes: [],
  upstreams: [],
  budgets: [],
  sessions: { total: 0, matching: 0, rows: [] },
};

function rigOf() {
  const clock = new FakeClock();
  const sent: LiveMessage[] = [];
  const looks: object[] = [];
  const state = { buffered: 0, ended: 0 };
  const socket = {
    getUserData: (): Arrived => ({ caller: ANYBODY, address: "127.0.0.1", watcher: null }),
    getBufferedAmount: () => state.buffered,
    send: (json: string) => sent.push(JSON.parse(json) as LiveMessage),
    end: (code: number) => {
      state.ended = code;
    },
  } as unknown as WebSocket<Arrived>;
  const source = {
    look: async (look: object) => {
      looks.push(look);
      return EMPTY;
    },
    open: async () => null,
  };
  const watcher = new Watcher(socket, { source, clock, door: OPEN_DOOR, surface: "/admin/live" });
  const pass = async (ticks: number): Promise<void> => {
    for (let tick = 0; tick < ticks; tick += 1) {
      clock.advance(250);
      // Looks are promises.
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const types = (): string[] => sent.splice(0).map(({ type }) => type);
  return { clock, watcher, state, looks, pass, types };
}

it("Watcher: sends nothing before the first message, then a view each second", async () => {
  const { watcher, pass, types } = rigOf();
  await pass(4);
  expect(types()).toEqual([]);
  watcher.message('{"type":"watch"}');
  await pass(8);
  expect(types()).toEqual(["view", "view"]);
});

it("Watcher: sends the session that is opened four times a second", async () => {
  const { watcher, pass, types } = rigOf();
  watcher.message('{"type":"watch","session":"talk"}');
  await pass(4);
  expect(types()).toEqual(["session", "view", "session", "session", "session"]);
});

it("Watcher: one that has not taken the last one gets none, and is not looked for", async () => {
  const { watcher, state, looks, pass, types } = rigOf();
  watcher.message('{"type":"watch"}');
  state.buffered = 1;
  await pass(8);
  expect([types(), looks.length]).toEqual([[], 0]);
  state.buffered = 0;
  await pass(1);
  expect(types()).toEqual(["view"]);
});

it("Watcher: many messages are one look", async () => {
  const { watcher, looks, pass } = rigOf();
  for (let count = 0; count < 100; count += 1) watcher.message(`{"type":"watch","prefix":"p${count}"}`);
  await pass(1);
  expect(looks).toMatchObject([{ prefix: "p99" }]);
});

it.each(["no JSON", '{"type":"watch","rows":501}', '{"type":"stop"}'])(
  "Watcher: %s ends it with an error that names the field",
  (message) => {
    const { watcher, state, types } = rigOf();
    watcher.message(message);
    expect([types(), state.ended]).toEqual([["error"], expect.any(Number)]);
    expect(state.ended).toBeGreaterThanOrEqual(1000);
  },
);

it("Watcher: looks at nothing when its socket has closed", async () => {
  const { clock, watcher, looks, pass } = rigOf();
  watcher.message('{"type":"watch"}');
  watcher.closed();
  watcher.closed();
  await pass(4);
  expect([looks.length, clock.pending]).toEqual([0, 0]);
});
