/** What one check of `doctor` found. */
export interface CheckResult {
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
  /** What to do. */
  readonly fix?: string;
}
