import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Spool } from "../../../../src/service/http/spool.ts";

describe("Spool", () => {
  it("gives back what was written, from memory and from a file", async () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(chunks, fc.integer({ min: 0, max: 20_000 }), async (written, memoryBytes) => {
        const spool = new Spool({ memoryBytes });
        await Promise.all(written.map((chunk) => spool.write(chunk)));
        const read: Uint8Array[] = [];
        for await (const chunk of spool.read()) read.push(chunk);
        expect(Buffer.concat(read)).toEqual(Buffer.concat(written));
        expect(spool.size).toBe(Buffer.concat(written).length);
        await spool.close();
        await spool.close();
      }),
      { numRuns: 40 },
    );
  });
});
