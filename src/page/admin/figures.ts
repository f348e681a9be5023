/** Figures as people read them. */

export function shortTime(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

export function shortBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}

const COUNTS = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: number): string {
  return COUNTS.format(value);
}

export function shortMs(ms: number): string {
  return ms < 10_000 ? `${count(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A listener hears this much late, or more. */
export const LATE_MS = 500;
