/**
 * Whose word is taken for where a request comes from: `X-Forwarded-For`,
 * `-Host` and `-Proto`, on which the networks of tokens, limits by address and
 * cookies rely.
 *
 * The address of a proxy says who it is only as long as nobody else has that
 * address. The code of deployments runs on the same machine as the node and
 * may open connections: to the node, too, which then sees an address of this
 * machine. So addresses of this machine are not believed by themselves. A
 * proxy that runs here sends a secret with each request, which deployments do
 * not have; where one is set, every proxy has to. The secret says who sent the
 * request, not who sent it to them: further back, where a deployment may have
 * called the proxy, addresses of this machine are not believed either.
 */
import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage, RequestListener } from "node:http";
import { networkInterfaces } from "node:os";
import { Networks } from "../auth/networks.ts";

/** Brings the secret of a proxy; taken off the request before anybody sees it. */
export const PROXY_SECRET_HEADER = "tessera-proxy-secret";

const FORWARDED = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

/** Of every machine; it reports only those that are set up. */
const LOOPBACK = ["127.0.0.0/8", "::1"];

/** A machine is seldom given another address. */
const LOOK_AGAIN_MS = 30_000;

/** Addresses whose answer is remembered: of proxies, and of callers that they name. */
const CAPACITY = 10_000;

/** Of IPv6 with IPv4 at its end. Callers may name longer texts, as long as a header. */
const MAX_ADDRESS_LENGTH = 45;

export interface TrustOptions {
  /** The proxies' addresses. */
  readonly networks: readonly string[];
  /** Whether proxies prove who they are by a secret. */
  readonly hasSecret: boolean;
  /** Default: what the system says. */
  readonly ownAddresses?: () => readonly string[];
  readonly monotonicMs?: () => number;
}

/**
 * Whether what comes from an address is believed.
 *
 * @param hop 0 for who sent the request, 1 for who they say sent it to them, and so on
 */
export function trustedAddresses(
  options: TrustOptions,
): (address: string | undefined, hop: number) => boolean {
  const { hasSecret, ownAddresses = addressesOfThisMachine } = options;
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const networks = new Networks(options.networks);
  const isProxy = remembering((address) => networks.includes(address));
  let isProxyElsewhere = isProxy;
  let lookAtMs = Number.NEGATIVE_INFINITY;
  return (address, hop) => {
    if (address === undefined) {
      // The connection is gone.
      return false;
    }
    if (hasSecret && hop === 0) {
      return isProxy(address);
    }
    if (monotonicMs() >= lookAtMs) {
      const own = new Networks([...LOOPBACK, ...ownAddresses()]);
      isProxyElsewhere = remembering((each) => networks.includes(each) && !own.includes(each));
      lookAtMs = monotonicMs() + LOOK_AGAIN_MS;
    }
    return isProxyElsewhere(address);
  };
}

/** Gives the same answer again for an address that was asked before. */
export function remembering(decide: (address: string) => boolean): (address: string) => boolean {
  const known = new Map<string, boolean>();
  return (address) => {
    if (address.length > MAX_ADDRESS_LENGTH) {
      return decide(address);
    }
    let answer = known.get(address);
    if (answer === undefined) {
      answer = decide(address);
      if (known.size >= CAPACITY) {
        known.clear();
      }
      known.set(address, answer);
    }
    return answer;
  };
}

/** The addresses of this machine that are in any of these networks. */
export function ownAddressesIn(networks: readonly string[]): string[] {
  const trusted = new Networks(networks);
  return addressesOfThisMachine().filter((address) => trusted.includes(address));
}

/** Lets the forwarding headers through for who brings the secret, and for nobody else. */
export function believeWithSecret(secret: string, handler: RequestListener): RequestListener {
  const expected = Buffer.from(secret);
  return (req, res) => {
    if (!bringsSecret(req, expected)) {
      for (const name of FORWARDED) {
        delete req.headers[name];
      }
    }
    delete req.headers[PROXY_SECRET_HEADER];
    handler(req, res);
  };
}

function bringsSecret({ headers }: IncomingMessage, expected: Buffer): boolean {
  const given = Buffer.from(String(headers[PROXY_SECRET_HEADER] ?? ""));
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap(
    (addresses) => addresses?.map(({ address }) => address) ?? [],
  );
}
