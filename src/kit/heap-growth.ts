import { setFlagsFromString } from "node:v8";

const HEAP_GROWTH = "--heap-growing-percent=100";

/**
 * The whole heap is walked when it has doubled, not whenever it has grown by a tenth (docs/architecture.md). For the whole
 * process: `voicewire` does it at its start, a program that embeds the gateway decides for itself.
 */
export function setHeapGrowth(): void {
  setFlagsFromString(HEAP_GROWTH);
}
