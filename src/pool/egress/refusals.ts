/** What the egress proxy is asked for, and the reasons for which it opens no connection. */

/** The host that a service asks for, as it wrote it. */
export interface Asked {
  readonly host: string;
  readonly port: number;
  /** It is asked for over HTTP without TLS. Default: nobody knows. */
  readonly isPlain?: boolean;
}

/** The policy refused it; the message is for the service's author. */
export class EgressRefusedError extends Error {
  override readonly name = "EgressRefusedError";
}

/** The network failed, rather than the policy; the message is for the service's author. */
export class EgressFailedError extends Error {
  override readonly name = "EgressFailedError";
}

/** A proxy cannot serve such a request. */
export class ProxyRequestError extends Error {
  override readonly name = "ProxyRequestError";
}

/** The HTTP answer for an error. */
export function refusalOf(err: unknown): { readonly status: number; readonly text: string } {
  if (err instanceof EgressRefusedError) {
    return { status: 403, text: `${err.message}\n` };
  }
  if (err instanceof ProxyRequestError) {
    return { status: 400, text: `${err.message}\n` };
  }
  const text = err instanceof EgressFailedError ? err.message : "the connection failed";
  return { status: 502, text: `${text}\n` };
}
