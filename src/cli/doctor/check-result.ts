/** What one check of `doctor` found. */
export interface CheckResult {
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
  /** What to do. */
  readonly fix?: string;
}

export interface Worry {
  readonly what: string;
  readonly fix: string;
}

/** The result of something that works; `status`: where there are worries. */
export function resultWith(
  detail: string,
  worries: readonly Worry[],
  status: "warn" | "fail" = "warn",
): CheckResult {
  if (worries.length === 0) return { status: "ok", detail };
  return {
    status,
    detail: [detail, ...worries.map(({ what }) => what)].join("; "),
    fix: worries.map(({ fix }) => fix).join("; "),
  };
}
