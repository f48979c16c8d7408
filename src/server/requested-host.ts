/**
 * The host that a request asks for, checked before anything is decided by it:
 * routing, the organization and the deployment all depend on it, and so does
 * what a proxy or a cache before this server took the request for.
 *
 * - A request names one host: one `Host` (RFC 9112, section 3.2), an absolute
 *   target that agrees with it, and over HTTP/2 an `:authority` that agrees
 *   with `host` (RFC 9113, section 8.3.1). Anything else is 400.
 * - A platform with a public address serves its own hosts and no others. A page
 *   that lets its name point here would otherwise be of the same origin as what
 *   it asks for. Other hosts are 421 (RFC 9110, section 15.5.20), except for
 *   probes, whose senders know only addresses.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { problem } from "../errors.ts";
import { appOf } from "../hosting/hosts.ts";
import { sendProblem } from "./http/problem.ts";
import { organizationOfHost } from "./rpc/engine/caller.ts";

/** The hosts of a platform with a public address. */
interface OwnHosts {
  /** Names at which the platform and this node are reached, without ports. */
  readonly names: readonly string[];
  readonly appsDomain: string | undefined;
  readonly platformDomain: string | undefined;
}

/** Paths that answer on every host. */
const PROBES = new Set(["/livez", "/healthz", "/readyz"]);

/** Refuses requests that name several hosts, and with `own` those for other hosts. */
export function refuseOtherHosts(app: FastifyInstance, own: OwnHosts | undefined): void {
  const names = new Set(own?.names.map(hostnameOf));
  const isOwn = (req: FastifyRequest): boolean => {
    const name = hostnameOf(req.host);
    return (
      own === undefined ||
      names.has(name) ||
      name === own.platformDomain ||
      (own.appsDomain !== undefined && appOf(name, own.appsDomain) !== undefined) ||
      (own.platformDomain !== undefined &&
        organizationOfHost(name, own.platformDomain) !== undefined) ||
      isLoopback(name) ||
      name === localAddress(req.raw)
    );
  };
  app.addHook("onRequest", (req, reply, done) => {
    const fault = faultOfHost(req.raw);
    if (fault !== undefined) {
      sendProblem(reply, problem("REQUEST_INVALID", fault));
    } else if (!isOwn(req) && !PROBES.has(req.url.split("?", 1)[0] ?? "")) {
      const asked = JSON.stringify(req.host.slice(0, 255));
      const message = `this server does not serve the host ${asked}: ask at the platform's own address`;
      sendProblem(reply, problem("REQUEST_INVALID", message), { status: 421 });
    } else {
      done();
    }
  });
}

/** What is wrong with the hosts that a request names; undefined when it names one. */
function faultOfHost({ rawHeaders, headers, url = "" }: IncomingMessage): string | undefined {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    // Most names are told apart by their length.
    count += name.length === 4 && name.toLowerCase() === "host" ? 1 : 0;
  }
  if (count > 1) {
    return "the request has more than one Host header: send one";
  }
  const { host = "", ":authority": authority } = headers;
  if (count === 1 && typeof authority === "string" && !isSame(authority, host)) {
    return "the request's :authority and its host header differ: send one of them, or the same";
  }
  if (url.startsWith("/")) {
    return undefined;
  }
  const target = /^https?:\/\/(?:[^/?#@]*@)?([^/?#]*)/i.exec(url)?.[1];
  return target === undefined || isSame(target, host)
    ? undefined
    : "the request's absolute target and its Host header name different hosts";
}

/** Whether two hosts are the same, with the port of http left out or not. */
function isSame(one: string, other: string): boolean {
  const plain = (host: string) => host.toLowerCase().replace(/:(?:80)?$/, "");
  return one === other || plain(one) === plain(other);
}

/** The name or address of a host, without its port and brackets. */
function hostnameOf(host: string): string {
  const name = host.toLowerCase();
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(name)?.[1];
  // An address of IPv6 without brackets has no port.
  return address ?? (/:.*:/.test(name) ? name : name.replace(/:\d+$/, "").replace(/\.$/, ""));
}

/** Names of this machine for itself; browsers resolve none of them elsewhere (RFC 6761, section 6.3). */
function isLoopback(name: string): boolean {
  return (
    name === "localhost" ||
    name.endsWith(".localhost") ||
    name === "::1" ||
    /^127(?:\.\d{1,3}){3}$/.test(name)
  );
}

/** The address of this machine that the request came to, which is what a probe asks for. */
function localAddress({ socket }: IncomingMessage): string | undefined {
  return socket.localAddress?.replace(/^::ffff:(?=[\d.]+$)/, "");
}
