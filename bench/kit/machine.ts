/** What the figures were measured on. */
import { arch, cpus, loadavg, release, totalmem, type } from "node:os";

/** One line a fact: processor, cores, memory, system, Node, date and load before the start. */
export function machineBlock(): string[] {
  const processors = cpus();
  const load = loadavg().map((value) => value.toFixed(2));
  return [
    `CPU   ${processors[0]?.model.trim() ?? "unknown"}, ${processors.length} cores (shared with the load and the upstream)`,
    `RAM   ${(totalmem() / 2 ** 30).toFixed(1)} GiB`,
    `OS    ${type()} ${release()} ${arch()}`,
    `Node  ${process.version}`,
    `Date  ${new Date().toISOString()}`,
    `Load  ${load.join(" ")} (1, 5, 15 min, before the start)`,
  ];
}
