/** Metrics of each upstream region; at most eight regions, and twenty limits of each. */
import { Counter, Gauge, type Registry } from "prom-client";

export interface RegionFigures {
  readonly name: string;
  readonly isHealthy: boolean;
  readonly requests: number;
  /** Requests that went on from here to another region. */
  readonly failovers: number;
  /** Requests that may be open at once, as learned from the answers, by group (model). */
  readonly limits: readonly { readonly group: string; readonly limit: number }[];
}

/** A label is no place for a text of any length that a client has made up. */
const MAX_LABEL_CHARS = 64;

/** `read` is called when the metrics are asked for. */
export function addRegionMetrics(registry: Registry, read: () => readonly RegionFigures[]): void {
  const registers = [registry];
  const labelNames = ["region"] as const;
  new Counter({
    name: "voicewire_upstream_region_requests_total",
    help: "Requests begun in an upstream region",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name, requests } of read()) this.inc({ region: name }, requests);
    },
  });
  new Counter({
    name: "voicewire_upstream_region_failovers_total",
    help: "Requests that went on from an upstream region to another one",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name, failovers } of read()) this.inc({ region: name }, failovers);
    },
  });
  new Gauge({
    name: "voicewire_upstream_region_healthy",
    help: "Whether an upstream region is fit to be asked (1) or not (0)",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name, isHealthy } of read()) this.set({ region: name }, isHealthy ? 1 : 0);
    },
  });
  new Gauge({
    name: "voicewire_upstream_limit",
    help: "Requests of a model that may be open in an upstream region, as far as its answers tell",
    labelNames: ["region", "group"] as const,
    registers,
    collect() {
      this.reset();
      for (const { name, limits } of read()) {
        for (const { group, limit } of limits) {
          this.set({ region: name, group: group.slice(0, MAX_LABEL_CHARS) }, limit);
        }
      }
    },
  });
}
