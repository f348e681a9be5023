/** The address of the client that a request comes from. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { clientAddress, type ProxyTrust } from "../access/client-address.ts";

/** Only before the request's handler returns. The library copies the address for each who asks: it is noted. */
export function requestAddress(res: HttpResponse, req: HttpRequest, trust: ProxyTrust): string {
  const noted: unknown = res.clientAddress;
  if (typeof noted === "string") return noted;
  const address = clientAddress(
    {
      peer: textOf(res.getRemoteAddressAsText()),
      proxied: () => textOf(res.getProxiedRemoteAddressAsText()),
      forwardedFor: () => forwardedFor(req),
    },
    trust,
  );
  res.clientAddress = address;
  return address;
}

/** `getHeader` gives the first one alone, which may be the client's own. */
function forwardedFor(req: HttpRequest): string {
  const values: string[] = [];
  req.forEach((name, value) => {
    if (name === "x-forwarded-for") values.push(value);
  });
  return values.join(",");
}

function textOf(ascii: ArrayBuffer): string {
  return Buffer.from(ascii).toString("latin1");
}
