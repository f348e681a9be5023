/** CPU time that a process has used, read from the kernel: all threads, user and system. */
import { readFileSync } from "node:fs";

/** One tick of /proc/<pid>/stat: USER_HZ is 100 on every Linux that Node runs on (`getconf CLK_TCK`). */
const TICK_MS = 10;

/** CPU time of a process and of its living children (nginx works in one), ms; the resolution is 10 ms. */
export function cpuMs(pid: number): number {
  let ms = ownCpuMs(pid);
  for (const child of childrenOf(pid)) ms += cpuMs(child);
  return ms;
}

function ownCpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // proc(5): the name in field 2 may hold spaces and brackets; utime is field 14, stime field 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1")
    .split(" ")
    .filter((text) => text.trim() !== "")
    .map(Number);
}

/** CPU time of all cores that the host gave to others while this machine wanted it, ms since it started (proc(5): steal). */
export function stolenMs(): number {
  const fields = readFileSync("/proc/stat", "latin1").split("\n", 1)[0]?.split(/\s+/) ?? [];
  return Number(fields[8] ?? 0) * TICK_MS;
}
