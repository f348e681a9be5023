import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Spool } from "../../../../src/service/http/spool.ts";
import { TemporaryFiles } from "../../../../src/service/media/temporary-file.ts";

describe("Spool", () => {
  it("gives back what was written, from memory and from a file", async () => {
    const temporaryFiles = new TemporaryFiles();
    const chunks = fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(chunks, fc.integer({ min: 0, max: 20_000 }), async (written, memoryBytes) => {
        const spool = new Spool(temporaryFiles, { memoryBytes });
        await Promise.all(written.map((chunk) => spool.write(chunk)));
        const whole = Buffer.concat(written);
        expect(temporaryFiles.bytes).toBe(whole.length > memoryBytes ? whole.length : 0);
        const read: Uint8Array[] = [];
        for await (const chunk of spool.read()) read.push(chunk);
        expect(Buffer.concat(read)).toEqual(whole);
        expect(spool.size).toBe(whole.length);
        await spool.close();
        await spool.close();
        expect(temporaryFiles.bytes).toBe(0);
      }),
      { numRuns: 40 },
    );
  });

  it("rejects with 429 what the temporary files have no room for, and frees what it holds", async () => {
    const temporaryFiles = new TemporaryFiles({ maxBytes: 100 });
    const spool = new Spool(temporaryFiles, { memoryBytes: 50 });
    await spool.write(new Uint8Array(50));
    await spool.write(new Uint8Array(50));
    await expect(spool.write(new Uint8Array(1))).rejects.toMatchObject({ httpStatus: 429 });
    await spool.close();
    expect(temporaryFiles.bytes).toBe(0);
  });
});
