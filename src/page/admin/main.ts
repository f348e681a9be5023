/** The live view: what is watched, what of it is shown, and the keys that move between them. */
import type { LiveMessage, RowOrder } from "../../protocol/live-view.ts";
import { tokenOf } from "../route.ts";
import { byId } from "../view/dom.ts";
import { type PlainError, tokenInPlainWords } from "../view/plain-words.ts";
import { TokenForm } from "../view/token-form.ts";
import { type LinkState, LiveLink } from "./live-link.ts";
import { showOverview } from "./overview.ts";
import { SessionPanel } from "./session-panel.ts";
import { SessionTable } from "./session-table.ts";

const TOKEN_COMMAND = "voicewire token --sessions '*' --allow admin,listen --for me --expires-in 3600";
const FEW_ROWS = 100;
const MOST_ROWS = 500;

const address = new URL(location.href);
const token = tokenOf(address);
if (token !== null) address.hash = "";
history.replaceState(null, "", address);

const overview = byId("overview", HTMLElement);
const prefix = byId("prefix", HTMLInputElement);
const order = byId("order", HTMLSelectElement);
const moreRows = byId("more-rows", HTMLButtonElement);
const table = new SessionTable((name) => openSession(name));
const panel = new SessionPanel();
let rows = FEW_ROWS;
let hasView = false;

const form = new TokenForm((given) => {
  form.hide();
  link.useToken(given);
});

const socketUrl = new URL("/admin/live", location.href);
socketUrl.protocol = socketUrl.protocol === "https:" ? "wss:" : "ws:";
const link = new LiveLink({ url: socketUrl.href, onMessage: show, onState: showState }, token, watched());

function watched() {
  return { order: order.value as RowOrder, prefix: prefix.value.trim(), rows, session: panel.name };
}

function openSession(name: string): void {
  overview.hidden = true;
  panel.open(name);
  link.watch(watched());
  remember(name);
}

function closeSession(): void {
  const { name } = panel;
  panel.close();
  overview.hidden = !hasView;
  link.watch(watched());
  remember("");
  table.focus(name);
}

/** A reload comes back to the session that is opened. */
function remember(name: string): void {
  if (name === "") address.searchParams.delete("session");
  else address.searchParams.set("session", name);
  history.replaceState(null, "", address);
}

function show(message: LiveMessage): void {
  if (message.type === "session") {
    if (message.name === panel.name) panel.show(message.opened);
    return;
  }
  hasView = true;
  overview.hidden = panel.name !== "";
  const { sessions } = message.view;
  table.show(sessions, prefix.value.trim());
  moreRows.hidden = rows === MOST_ROWS || sessions.matching <= FEW_ROWS;
  showOverview(message.view);
}

function showState(state: LinkState): void {
  const status = byId("status", HTMLElement);
  const words: Readonly<Record<LinkState["kind"], readonly [kind: string, text: string]>> = {
    connecting: ["connecting", "Connecting…"],
    open: ["ready", "Live"],
    waiting: ["trouble", waitingWords(state)],
    refused: ["trouble", "Not connected"],
  };
  const [kind, text] = words[state.kind];
  status.dataset.kind = kind;
  byId("status-text", HTMLElement).textContent = text;
  document.documentElement.dataset.link = state.kind;
  if (state.kind === "open") form.hide();
  if (state.kind !== "refused") return;
  // What was seen by a token that does not hold any more.
  hasView = false;
  overview.hidden = true;
  form.show(refusedWords(state.code), link.hasToken && state.code !== "forbidden" ? null : TOKEN_COMMAND);
}

function waitingWords(state: LinkState): string {
  if (state.kind !== "waiting") return "";
  const why = state.code === "listener_limit" ? "As many watch as may" : "The gateway does not answer";
  return `${why}: trying again in ${state.seconds} s`;
}

function refusedWords(code: string): PlainError {
  if (code === "forbidden") {
    return {
      what: "Your token does not allow the live view.",
      advice: "Paste one that allows admin.",
    };
  }
  const words = tokenInPlainWords(code, link.hasToken);
  return words ?? { what: "The gateway does not let this page in.", advice: "" };
}

prefix.addEventListener("input", () => link.watch(watched()));
order.addEventListener("change", () => link.watch(watched()));
moreRows.addEventListener("click", () => {
  rows = MOST_ROWS;
  link.watch(watched());
});
byId("back", HTMLButtonElement).addEventListener("click", closeSession);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel.name !== "") closeSession();
});
const asked = address.searchParams.get("session");
if (asked !== null) openSession(asked);
link.start();
