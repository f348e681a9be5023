/** The processes, the upstream and the budgets. */
import type { LiveBudget, LiveNode, LiveUpstream, LiveView, OtherNode } from "../../protocol/live-view.ts";
import { byId, make } from "../view/dom.ts";
import { count, shortBytes, shortTime } from "./figures.ts";

/** An event loop that is later makes audio late. */
const LATE_LOOP_MS = 30;

export function showOverview({ nodes, other_nodes, upstreams, budgets }: LiveView): void {
  byId("nodes", HTMLElement).replaceChildren(...nodes.map(nodeItem));
  showOthers(other_nodes);
  byId("upstreams", HTMLElement).replaceChildren(...upstreams.map(upstreamItem));
  byId("budgets", HTMLElement).replaceChildren(...budgets.map(budgetItem));
  byId("no-budgets", HTMLElement).hidden = budgets.length > 0;
}

function nodeItem(node: LiveNode): HTMLElement {
  const { loop_delay_ms: delay, cpu_percent: cpu } = node;
  const facts: readonly (readonly [string, string, boolean?])[] = [
    ["Sessions", count(node.sessions)],
    ["Connections", count(node.connections)],
    ["Event loop", delay === null ? "…" : `${delay.toFixed(1)} ms late`, (delay ?? 0) >= LATE_LOOP_MS],
    ["Processor", cpu === null ? "…" : `${cpu} %`],
    ["Memory", shortBytes(node.memory_bytes)],
    ["Up for", shortTime(node.uptime_s)],
  ];
  return make("li", {
    children: [
      make("p", {
        class: "node-name",
        children: [
          make("b", { text: node.name }),
          ` ${node.version}`,
          ...(node.is_draining ? [make("span", { class: "badge", text: "draining" })] : []),
        ],
      }),
      make("dl", {
        class: "node-facts",
        children: facts.map(([name, value, isLate = false]) =>
          make("div", {
            children: [
              make("dt", { text: name }),
              make("dd", { text: value, attributes: isLate ? { "data-look": "late" } : {} }),
            ],
          }),
        ),
      }),
    ],
  });
}

function showOthers(others: readonly OtherNode[]): void {
  const note = byId("other-nodes", HTMLElement);
  note.hidden = others.length === 0;
  const names = others.map(({ name, state, load, is_draining }) => {
    const how = state === "alive" ? `${Math.round(load * 100)} % full` : state;
    return `${name} (${is_draining ? `${how}, draining` : how})`;
  });
  note.textContent = `Only sessions of this node are shown. Others in the cluster: ${names.join(", ")}. Each has a live view of its own.`;
}

function upstreamItem(upstream: LiveUpstream): HTMLElement {
  const { name, is_healthy, open, queued, limit, errors_last_minute: errors, requests, failovers } = upstream;
  const words = [
    `${count(open)} of ${count(limit)} open`,
    `${count(queued)} waiting`,
    `${count(requests)} requests`,
    ...(failovers === 0 ? [] : [`${count(failovers)} went elsewhere`]),
  ];
  const trouble = errors === 0 ? "" : `${count(errors)} failed in the last minute`;
  return make("li", {
    children: [
      make("p", {
        class: "gauge-head",
        children: [
          make("b", { text: name }),
          make("span", {
            class: "health",
            text: is_healthy ? "Healthy" : "Down",
            attributes: is_healthy ? {} : { "data-look": "late" },
          }),
        ],
      }),
      bar(open, limit, queued > 0),
      make("p", {
        class: "gauge-words",
        children: [
          words.join(" · "),
          ...(trouble === ""
            ? []
            : [" · ", make("span", { text: trouble, attributes: { "data-look": "late" } })]),
        ],
      }),
    ],
  });
}

function budgetItem({ of, what, used, limit, is_low }: LiveBudget): HTMLElement {
  const percent = Math.round((used / Math.max(1, limit)) * 100);
  const words = `${count(used)} of ${count(limit)} ${what.replaceAll("_", " ")}`;
  return make("li", {
    children: [
      make("p", {
        class: "gauge-head",
        children: [
          make("b", { text: of }),
          make("span", {
            text: is_low ? `${percent} % used` : `${percent} %`,
            attributes: is_low ? { "data-look": "late" } : {},
          }),
        ],
      }),
      bar(used, limit, is_low),
      make("p", { class: "gauge-words", text: words }),
    ],
  });
}

/** The words beside it say the same. */
function bar(used: number, limit: number, isLate: boolean): HTMLElement {
  const meter = document.createElement("progress");
  meter.max = Math.max(1, limit);
  meter.value = Math.min(used, meter.max);
  meter.setAttribute("aria-hidden", "true");
  if (isLate) meter.dataset.look = "late";
  return meter;
}
