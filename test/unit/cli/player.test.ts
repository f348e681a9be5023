import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findPlayer, startPlayer } from "../../../src/cli/output/player.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-player-"));
afterAll(() => rmSync(folder, { recursive: true }));

function install(name: string, script: string): void {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

test("findPlayer() finds the first player on the PATH, and startPlayer() gives it the frames", async () => {
  expect(findPlayer({ PATH: folder })).toBeUndefined();
  expect(findPlayer({})).toBeUndefined();
  install("ffplay", "exit 1");
  install("aplay", `cat > ${folder}/played`);
  const [name, ...args] = findPlayer({ PATH: `/nonexistent:${folder}` }) ?? [];
  expect(name).toBe("aplay");
  const player = startPlayer([join(folder, "aplay"), ...args]);
  player.write(Uint8Array.of(1, 2));
  player.write(Uint8Array.of(3));
  await player.end();
  expect([...readFileSync(join(folder, "played"))]).toEqual([1, 2, 3]);
  await player.end();
});

test("startPlayer() takes a player that is missing or ends at once for silence", async () => {
  install("broken", "exit 1");
  for (const command of [[join(folder, "broken")], [join(folder, "missing")]]) {
    const player = startPlayer(command);
    for (let index = 0; index < 100; index++) player.write(new Uint8Array(960));
    await player.end();
    player.write(new Uint8Array(960));
    player.stop();
  }
});

test("startPlayer() stop() ends the sound at once", async () => {
  install("endless", "exec sleep 60");
  const player = startPlayer([join(folder, "endless")]);
  player.write(new Uint8Array(960));
  player.stop();
  await player.end();
});
