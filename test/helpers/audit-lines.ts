/** An audit log that keeps its lines for a test. */
import type { Logger } from "../../src/kit/log.ts";

export interface AuditLine {
  readonly audit: string;
  readonly [field: string]: unknown;
}

export class AuditLines {
  readonly lines: AuditLine[] = [];
  readonly log: Logger;

  constructor() {
    const keep = (fields: object): void => {
      this.lines.push(fields as AuditLine);
    };
    this.log = { debug: keep, info: keep, warn: keep, error: keep };
  }

  get refused(): AuditLine[] {
    return this.lines.filter(({ audit }) => audit === "refused");
  }
}
