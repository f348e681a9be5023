import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { staleness } from "./helpers/built.ts";

const root = mkdtempSync(join(tmpdir(), "voicewire-built-"));
afterAll(() => rmSync(root, { recursive: true }));

function write(name: string, atSeconds: number): void {
  const file = join(root, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "");
  utimesSync(file, atSeconds, atSeconds);
}

it("dist/ has to be there as a whole, and newer than each file of src/", () => {
  write("src/audio/formats.ts", 100);
  expect(staleness(root)).toBe("missing");
  write("dist/main.js", 200);
  expect(staleness(root)).toBe("missing");
  mkdirSync(join(root, "dist/page"));
  expect(staleness(root)).toBeNull();
  write("src/audio/formats.ts", 300);
  expect(staleness(root)).toBe("older than src/");
});
