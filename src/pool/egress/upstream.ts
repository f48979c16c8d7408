/**
 * The operator's own HTTP proxy (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`), through which an egress
 * proxy connects where the machine has no other way out: by CONNECT (RFC 9110, section 9.3.6).
 *
 * The policy judges what this machine knows of a host. A name may have an address only where the
 * proxy is: then it is the proxy that decides, unless the name is one of private networks.
 */
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { parseAddress } from "../../collections/networks.ts";
import { within } from "../../time/race.ts";
import { type DialOptions, resolveName } from "./dial.ts";
import { MAX_PROXY_HEADER_BYTES } from "./forward.ts";
import { type Asked, EgressRefusedError } from "./refusals.ts";
import { type HostRule, matchesAddress, matchesName, normalName, parseRule } from "./rules.ts";

/** How long this machine may take to say what it knows of a name. */
const LOOKUP_TIMEOUT_MS = 3_000;
/** How long the proxy may take to connect. */
const UPSTREAM_TIMEOUT_MS = 30_000;

/** A proxy of the operator's. */
interface UpstreamProxy {
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`; undefined without credentials. It is never shown. */
  readonly authorization: string | undefined;
  /** The variable that names it. */
  readonly variable: string;
}

/** The proxy for a host; undefined: it is connected to directly. */
export type FindUpstream = (asked: Asked) => UpstreamProxy | undefined;

/**
 * Reads the operator's variables; undefined where they name no proxy. Throws for what is no address
 * of a proxy.
 */
export function upstreamProxies(env: NodeJS.ProcessEnv): FindUpstream | undefined {
  const [secure, plain] = [readProxy(env, "HTTPS_PROXY"), readProxy(env, "HTTP_PROXY")];
  if (secure === undefined && plain === undefined) {
    return undefined;
  }
  const [, exceptions = ""] = variableOf(env, "NO_PROXY") ?? [];
  const direct = exceptions.split(",").map((each) => each.trim().replace(/^\./, "*."));
  const rules = direct.flatMap((each) => parseRule(each) ?? []);
  return (asked) =>
    direct.includes("*") || isLoopback(asked.host) || rules.some((rule) => isNamed(rule, asked))
      ? undefined
      : asked.isPlain
        ? plain
        : secure;
}

/** Opens a connection through a proxy. Rejects with an `EgressRefusedError` that says why. */
export async function dialThrough(
  via: UpstreamProxy,
  asked: Asked,
  { policy, resolve = resolveName }: DialOptions,
): Promise<Socket> {
  const admitted = policy.admit(asked);
  const known =
    admitted.kind === "address"
      ? [admitted.address.toString()]
      : await within(
          resolve(admitted.name).catch(() => []),
          LOOKUP_TIMEOUT_MS,
          () => [],
        );
  const addresses = known.flatMap((text) => parseAddress(text) ?? []);
  // Which of them the proxy takes is not known here.
  const faults = addresses.map((address) => policy.addressFault(asked, address));
  const fault =
    addresses.length === 0 ? policy.nameFault(asked) : faults.find((one) => one !== undefined);
  if (fault !== undefined) {
    throw new EgressRefusedError(fault);
  }
  return await connectThrough(via, asked);
}

function connectThrough(via: UpstreamProxy, { host, port }: Asked): Promise<Socket> {
  const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const { authorization } = via;
  return new Promise((settle, reject) => {
    const fail = (why: string, cause?: Error): void => {
      clearTimeout(late);
      const shown = `the operator's proxy ${via.host}:${via.port} (${via.variable})`;
      reject(new EgressRefusedError(`${shown} ${why}`, { cause }));
    };
    const asking = request({
      ...{ method: "CONNECT", path: target, maxHeaderSize: MAX_PROXY_HEADER_BYTES },
      headers: {
        host: target,
        ...(authorization !== undefined && { "proxy-authorization": authorization }),
      },
      createConnection: () =>
        connect({ host: via.host, port: via.port, allowHalfOpen: true, noDelay: true }),
    });
    const late = setTimeout(() => {
      asking.destroy(Object.assign(new Error("timeout"), { code: "ETIMEDOUT" }));
    }, UPSTREAM_TIMEOUT_MS);
    asking.once("connect", ({ statusCode = 0 }, socket, head) => {
      if (statusCode < 200 || statusCode > 299) {
        socket.destroy();
        fail(explained(statusCode, target));
        return;
      }
      clearTimeout(late);
      socket.on("error", () => socket.destroy());
      if (head.length > 0) {
        socket.unshift(head);
      }
      settle(socket as Socket);
    });
    asking.once("response", (res) => {
      res.destroy();
      fail(`answers a CONNECT with ${res.statusCode}, as no proxy does`);
    });
    asking.once("error", (err: NodeJS.ErrnoException) => {
      fail(`cannot be used for ${target}: ${err.code ?? "it broke off"}`, err);
    });
    asking.end();
  });
}

function explained(status: number, target: string): string {
  if (status === 407) {
    return "asks for other credentials (407): put a name and a password that it takes into the variable, as http://name:password@proxy:3128";
  }
  return status >= 500
    ? `does not reach ${target} (${status})`
    : `refuses ${target} (${status}): allow it there`;
}

/** The name and the value of a variable, which is in capitals, or in small letters, which goes first. */
function variableOf(
  env: NodeJS.ProcessEnv,
  name: string,
): readonly [name: string, value: string] | undefined {
  const found = [name.toLowerCase(), name].find((each) => (env[each] ?? "") !== "");
  return found === undefined ? undefined : [found, env[found] ?? ""];
}

function readProxy(env: NodeJS.ProcessEnv, name: string): UpstreamProxy | undefined {
  const [variable, value] = variableOf(env, name) ?? [];
  if (variable === undefined || value === undefined) {
    return undefined;
  }
  const text = value.includes("://") ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" || url.hostname === "") {
    // The value may have a password in it.
    throw new Error(
      `the variable ${variable} must be the address of a proxy over HTTP, such as http://proxy.example.com:3128`,
    );
  }
  const { username, password } = url;
  const credentials = `${decoded(username)}:${decoded(password)}`;
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? 80 : Number(url.port),
    authorization:
      credentials === ":" ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`,
    variable,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isLoopback(host: string): boolean {
  const range = parseAddress(host)?.range();
  return range === "loopback" || normalName(host) === "localhost";
}

/** Whether an entry of `NO_PROXY` names a host: a name stands for all below it, too. */
function isNamed(rule: HostRule, { host, port }: Asked): boolean {
  const address = parseAddress(host);
  if (address !== undefined) {
    return matchesAddress(rule, address, port);
  }
  const name = normalName(host);
  if (name === undefined) {
    return false;
  }
  const below: HostRule[] =
    rule.host.kind === "name"
      ? [{ ...rule, host: { kind: "below", suffix: `.${rule.host.name}` } }]
      : [];
  return [rule, ...below].some((each) => matchesName(each, name, port));
}
