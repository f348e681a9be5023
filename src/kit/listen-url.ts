/** The URL of an address that is listened on. */

interface ListenAddress {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
}

/** "Every interface" is no address to go to. */
export function listenUrl({ scheme, host, port }: ListenAddress): string {
  const reachable = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `${scheme}://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
