import { expect } from "vitest";

/**
 * Says what the test that calls it measures: it fails where the service ignores `parameter` of `endpoint`, such as
 * "POST /v1/history/download". The table of docs/endpoints.md is made from these calls (test/service/parameters), which
 * reads them in the source: the three are literals.
 */
export function measures(endpoint: string, parameter: string, effect: string): void {
  if (expect.getState().currentTestName !== undefined) return;
  throw new Error(`Nothing is measured outside of a test: ${parameter} of ${endpoint} (${effect})`);
}
