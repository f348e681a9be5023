/** What the benches use of autocannon, which comes without typings. */
declare module "autocannon" {
  interface Options {
    readonly url: string;
    readonly method: "GET" | "POST";
    readonly connections: number;
    /** Seconds. */
    readonly duration: number;
    readonly body?: string;
    readonly headers?: Readonly<Record<string, string>>;
  }
  interface Result {
    readonly requests: { readonly total: number; readonly average: number };
    readonly latency: { readonly p99: number };
    readonly non2xx: number;
    readonly errors: number;
  }
  export default function autocannon(options: Options): Promise<Result>;
}
