/** Reads P5's figures from what bench/ndjson.bench.ts prints: its last lines, one a kind of stream. */
import type { Row } from "./bench.ts";

const TARGET_RATIO = 0.7;

export function ndjsonRows(output: string): { rows: Row[]; method: string[] } {
  const figures = output.slice(output.indexOf("\nP5, target"));
  const rows = [...figures.matchAll(/^ {2}(\S.*?) +(\d+\.\d+)$/gm)].map(([, stream = "", ratio = ""]) => ({
    figure: `P5 reading timestamp records: ${stream}`,
    measured: `${ratio}x`,
    baseline: "1 (split + JSON.parse + base64)",
    ratio,
    target: `<= ${TARGET_RATIO.toFixed(2)}x`,
    isOk: Number(ratio) <= TARGET_RATIO,
  }));
  const method = [
    "Both readers over the same pieces of 16 KiB of the same streams in one process (mitata), p50 of each.",
  ];
  return { rows, method };
}
