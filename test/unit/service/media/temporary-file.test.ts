import { describe, expect, it } from "vitest";
import { TemporaryFiles } from "../../../../src/service/media/temporary-file.ts";
import { openTemporaryFiles } from "../../../service/temporary-parts.ts";

describe("temporary files", () => {
  it("may hold 2 GB together", () => {
    expect(new TemporaryFiles().maxBytes).toBe(2 * 1024 ** 3);
  });

  it("count what is written, and give it back when they are closed, once", async () => {
    const files = new TemporaryFiles();
    const [first, second] = [await files.create(), await files.create()];
    await first.write(new Uint8Array(1000));
    await first.write(new Uint8Array(24));
    await second.write(new Uint8Array(500));
    expect(files.bytes).toBe(1524);
    await Promise.all([first.close(), first.close()]);
    expect(files.bytes).toBe(500);
    await second.close();
    expect([files.bytes, openTemporaryFiles()]).toEqual([0, 0]);
  });

  it("refuse what is over the bound with 429, whichever file it is for, and go on below it", async () => {
    const files = new TemporaryFiles({ maxBytes: 1000 });
    const [first, second] = [await files.create(), await files.create()];
    await first.write(new Uint8Array(900));
    await expect(second.write(new Uint8Array(101))).rejects.toMatchObject({ httpStatus: 429 });
    expect([files.bytes, second.bytes]).toEqual([900, 0]);
    await second.write(new Uint8Array(100));
    expect(files.bytes).toBe(1000);
    await first.close();
    await second.write(new Uint8Array(900));
    expect(files.bytes).toBe(1000);
    await second.close();
    expect(files.bytes).toBe(0);
  });

  it("count nothing of a file that was closed before the write ended", async () => {
    const files = new TemporaryFiles();
    const file = await files.create();
    const writing = file.write(new Uint8Array(300_000));
    const closing = file.close();
    await expect(file.write(new Uint8Array(10))).rejects.toThrow("it is closed");
    await Promise.allSettled([writing, closing]);
    expect([files.bytes, openTemporaryFiles()]).toEqual([0, 0]);
  });
});
