/** `/admin` of the operations port: what the gateway does at this moment, as a page, as JSON, and as a stream of views. */
import type { WebSocket } from "uWebSockets.js";
import type { Caller } from "../../access/caller.ts";
import type { Door } from "../../access/door.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import { LOOK_QUERY } from "../../protocol/live-view.ts";
import { reasonOf } from "../../protocol/read-json.ts";
import { Reply } from "../http.ts";
import { loadPage } from "../page.ts";
import { requestAddress } from "../request-address.ts";
import { needs, type Routes } from "../routes.ts";
import { acceptUpgrade, socketLimits, textReader } from "../sockets/websocket.ts";
import type { LiveSource } from "./live-source.ts";
import { type Arrived, openFor, Watcher } from "./watcher.ts";

const SURFACE = "/admin/live";
const STATE = "/admin/state";
/** Each costs a view a second. */
const MAX_WATCHERS = 16;
const MAX_MESSAGE_BYTES = 4096;
/** A view of as many rows as there may be, beside one session. */
const MAX_VIEW_BYTES = 1024 * 1024;
const IDLE_SECONDS = 60;

export interface LiveViewOptions {
  readonly source: LiveSource;
  readonly door: Door;
  readonly clock: Clock;
  /** Folder of the built page. */
  readonly folder: string;
}

export function routeLiveView(app: Routes, options: LiveViewOptions): void {
  routeLivePage(app, options.folder);
  app.get(STATE, needs("admin"), (res, req, caller) => {
    const reply = new Reply(res, "same-origin");
    const address = requestAddress(res, req, options.door.proxyTrust);
    stateFor({ caller, address }, req.getQuery() ?? "", options).then(
      (state) => reply.json(200, state),
      (thrown: unknown) => reply.fail(thrown),
    );
  });
  routeWatchers(app, options);
}

function routeLivePage(app: Routes, folder: string): void {
  const answers = loadPage(folder, { at: "/admin", scripts: "'self'" });
  for (const [path, answer] of answers) {
    app.getAndHead(path, "anybody", (res) => new Reply(res, "same-origin").send(answer));
  }
}

/** Rejects with invalid_field. */
async function stateFor(
  { caller, address }: { readonly caller: Caller; readonly address: string },
  query: string,
  { source, door: { audit } }: LiveViewOptions,
) {
  const result = LOOK_QUERY.safeParse(Object.fromEntries(new URLSearchParams(query)));
  if (!result.success) {
    const [issue] = result.error.issues;
    const field = (issue?.path ?? []).join(".");
    throw new GatewayError("invalid_field", `Query ${field} is not valid: ${reasonOf(issue)}`, { field });
  }
  const { session: name, ...look } = result.data;
  const view = await source.look({ ...look, sessions: caller.sessionLists });
  if (name === "") return { view };
  const opened = await openFor({ caller, address, surface: STATE }, name, { source, audit });
  return { view, opened };
}

function routeWatchers(app: Routes, { source, door, clock }: LiveViewOptions): void {
  const readText = textReader(MAX_MESSAGE_BYTES);
  const watchers = new Set<Watcher>();
  app.ws<Arrived>(SURFACE, needs("admin"), {
    ...socketLimits({
      hardMessageBytes: MAX_MESSAGE_BYTES,
      maxBackpressureBytes: MAX_VIEW_BYTES,
      idleSeconds: IDLE_SECONDS,
    }),
    upgrade: (res, req, context, caller) => {
      const address = requestAddress(res, req, door.proxyTrust);
      acceptUpgrade(res, req, { context, data: { caller, address, watcher: null } });
    },
    open: (socket: WebSocket<Arrived>) => {
      const arrived = socket.getUserData();
      const watcher = new Watcher(socket, { source, door, clock, surface: SURFACE });
      arrived.watcher = watcher;
      watchers.add(watcher);
      if (watchers.size <= MAX_WATCHERS) return;
      const thrown = new GatewayError(
        "listener_limit",
        `The live view has ${MAX_WATCHERS} watchers, which is the limit`,
        { retryAfterMs: 5000 },
      );
      door.audit.refused({ thrown, surface: SURFACE, ...arrived });
      watcher.refuse(thrown);
    },
    message: (socket, message, isBinary) => {
      const { watcher } = socket.getUserData();
      try {
        watcher?.message(readText(message, isBinary));
      } catch (thrown) {
        watcher?.refuse(thrown);
      }
    },
    close: (socket) => {
      const { watcher } = socket.getUserData();
      if (watcher === null) return;
      watcher.closed();
      watchers.delete(watcher);
    },
  });
}
