/** The parts of a ServiceContext that hold files for a while, and how a test looks at them. */
import { readdirSync, readlinkSync } from "node:fs";
import { TemporaryFiles } from "../../src/service/media/temporary-file.ts";
import { type UploadLimits, Uploads } from "../../src/service/media/upload.ts";

export interface TemporaryPartsOptions {
  /** Default: the service's own limits. */
  readonly uploadLimits?: Partial<UploadLimits>;
  readonly maxTemporaryBytes?: number;
}

export function temporaryParts({ uploadLimits, maxTemporaryBytes }: TemporaryPartsOptions = {}) {
  const temporaryFiles = new TemporaryFiles(
    maxTemporaryBytes === undefined ? {} : { maxBytes: maxTemporaryBytes },
  );
  return { temporaryFiles, uploads: new Uploads(temporaryFiles, uploadLimits) };
}

/** Temporary files that a process holds: they have no name, only a handle. */
export function openTemporaryFiles(pid: number | "self" = "self"): number {
  const handles = `/proc/${pid}/fd`;
  return readdirSync(handles).filter((handle) => {
    try {
      return /\/voicewire-[\da-f-]{36} \(deleted\)$/.test(readlinkSync(`${handles}/${handle}`));
    } catch (thrown) {
      // Closed between both calls.
      if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return false;
      throw thrown;
    }
  }).length;
}
