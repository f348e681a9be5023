import { defineConfig } from "vitest/config";

const UNIT = "test/unit/**/*.test.ts";

export default defineConfig({
  test: {
    // Two cores in CI: two workers left them idle for a third of the time, as many tests wait for speech to be heard.
    maxWorkers: 3,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    projects: [
      // The code has nothing global, so that the files of a worker can share its modules: loading them took half of the time.
      { extends: true, test: { name: "unit", include: [UNIT], isolate: false } },
      {
        extends: true,
        test: { name: "whole", include: ["test/**/*.test.ts"], exclude: [UNIT, "**/node_modules/**"] },
      },
    ],
  },
});
