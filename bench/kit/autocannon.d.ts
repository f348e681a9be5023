/** What the benches use of autocannon, which comes without typings. */
declare module "autocannon" {
  interface Options {
    readonly url: string;
    readonly method: "GET" | "POST";
    readonly connections: number;
    /** Seconds. */
    readonly duration: number;
  }
  interface Result {
    readonly requests: { readonly total: number; readonly average: number };
    readonly latency: { readonly p99: number };
  }
  export default function autocannon(options: Options): Promise<Result>;
}
