import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** They change what modules see when they are loaded, and so need modules of their own. */
const ALONE = ["test/service/sdk-proxied.test.ts", "test/linear-patterns.test.ts"];
/** They take longest: one that began last would leave a core idle. */
const LONGEST = [
  "test/unit/service/media/isolation-gain.test.ts",
  "test/cli/workers.test.ts",
  "test/e2e/streams.test.ts",
  "test/service/audio-isolation.test.ts",
  "test/package/package.test.ts",
  "test/cli/serve.test.ts",
  "test/service/seed.test.ts",
  "test/page/page.test.ts",
  "test/cli/tls.test.ts",
  "test/service/tier-borders.test.ts",
  "test/deploy/capacity-page.test.ts",
  "test/unit/bench/chaos/report.test.ts",
  "test/cluster/nats-bus.test.ts",
  "test/cluster/bus.test.ts",
  "test/cli/say.test.ts",
  "test/e2e/reverse-proxies.test.ts",
  "test/cli/cluster.test.ts",
  "test/service/speech-to-speech.test.ts",
  "test/cluster/takeover.test.ts",
  "test/deploy/alerts.test.ts",
  "test/fuzz/wire/wire.test.ts",
  "test/e2e/timing-truth.test.ts",
  "test/unit/service/text/normalizer.test.ts",
  "test/fuzz/fuzz.test.ts",
  "test/unit/service/media/decode-upload.test.ts",
];
/** Files that compute; the others mostly wait for speech to be heard. */
const COMPUTES = /^test\/(unit|service|fuzz)\//;

/** Mixes files that compute with files that wait: all of one kind at a time would leave cores idle, or make live audio late. */
class MixedSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const nameOf = ({ moduleId }: TestSpecification): string => relative(this.ctx.config.root, moduleId);
    const sorted = await super.sort(files);
    const longest = LONGEST.flatMap((name) => sorted.filter((file) => nameOf(file) === name));
    const rest = sorted.filter((file) => !longest.includes(file));
    const alone = rest.filter((file) => file.project.name === "alone");
    const shared = [...longest, ...rest.filter((file) => !alone.includes(file))];
    const kinds = [true, false].map((computes) =>
      shared.filter((file) => COMPUTES.test(nameOf(file)) === computes),
    );
    // Each kind is spread evenly over the whole run.
    const placed = kinds.flatMap((kind) =>
      kind.map((file, index) => ({ file, place: (index + 1) / (kind.length + 1) })),
    );
    // Whoever is alone comes first: a worker loses its modules to it.
    return [...alone, ...placed.sort((a, b) => a.place - b.place).map(({ file }) => file)];
  }
}

export default defineConfig({
  test: {
    // Two cores in CI: two workers left them idle for a third of the time, as many tests wait for speech to be heard.
    maxWorkers: 3,
    // A busy host takes three times as long: no test holds a time by this.
    testTimeout: 60_000,
    hookTimeout: 30_000,
    setupFiles: "test/helpers/leaks.ts",
    sequence: { sequencer: MixedSequencer },
    projects: [
      // The code has nothing global, so that the files of a worker can share its modules: loading them took half of the time.
      {
        extends: true,
        test: {
          name: "shared",
          include: ["test/**/*.test.ts"],
          exclude: [...ALONE, "**/node_modules/**"],
          isolate: false,
          globalSetup: "test/helpers/built.ts",
        },
      },
      { extends: true, test: { name: "alone", include: ALONE } },
    ],
  },
});
