/**
 * Trusted proxies: decides which senders may set `X-Forwarded-For`, `-Host`
 * and `-Proto`, on which the networks of tokens, limits by address and cookies
 * rely.
 *
 * An address identifies a proxy only as long as nobody else has that address.
 * The code of deployments runs on the same machine as the node and may connect
 * to the node, which then sees an address of this machine. So an address of
 * this machine alone is not trusted. A proxy that runs here sends a secret
 * with each request, which deployments do not have; where a secret is set,
 * every proxy has to send it. The secret identifies the sender of the request,
 * not the hop before it: a deployment may have called the proxy, so further
 * back addresses of this machine are not trusted either.
 */
import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage, RequestListener } from "node:http";
import { networkInterfaces } from "node:os";
import { Networks } from "../collections/networks.ts";

/** Carries the secret of a proxy; removed from the request before a handler sees it. */
export const PROXY_SECRET_HEADER = "tessera-proxy-secret";

const FORWARDED = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

/** The loopback addresses of every machine; the system reports only those that are set up. */
const LOOPBACK = ["127.0.0.0/8", "::1"];

/** How long the machine's own addresses are cached; they rarely change. */
const OWN_ADDRESSES_TTL_MS = 30_000;

/** Addresses whose answer is cached: of proxies, and of callers that they name. */
const MAX_CACHED_ADDRESSES = 10_000;

/**
 * Address that is cached: IPv6 with IPv4 at its end. Callers may name longer texts, as long as
 * a header.
 */
const MAX_ADDRESS_CHARACTERS = 45;

interface TrustOptions {
  /** The proxies' addresses. */
  readonly networks: readonly string[];
  /** Whether proxies prove their identity by a secret. */
  readonly hasSecret: boolean;
  /** Default: those that the system reports. */
  readonly ownAddresses?: () => readonly string[];
  readonly monotonicMs?: () => number;
}

/**
 * Returns a check of whether the forwarding headers of an address are trusted.
 *
 * @param hop 0 for the sender of the request, 1 for the hop that it names before itself, and so on
 */
export function trustedAddresses(
  options: TrustOptions,
): (address: string | undefined, hop: number) => boolean {
  const { hasSecret, ownAddresses = addressesOfThisMachine } = options;
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const networks = new Networks(options.networks);
  const isProxy = remembering((address) => networks.includes(address));
  let isRemoteProxy = isProxy;
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
      isRemoteProxy = remembering((each) => networks.includes(each) && !own.includes(each));
      lookAtMs = monotonicMs() + OWN_ADDRESSES_TTL_MS;
    }
    return isRemoteProxy(address);
  };
}

/** Caches a decision by address; an address too long for one is never cached. */
export function remembering(decide: (address: string) => boolean): (address: string) => boolean {
  const known = new Map<string, boolean>();
  return (address) => {
    if (address.length > MAX_ADDRESS_CHARACTERS) {
      return decide(address);
    }
    let answer = known.get(address);
    if (answer === undefined) {
      answer = decide(address);
      if (known.size >= MAX_CACHED_ADDRESSES) {
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

/** Removes the forwarding headers of requests that do not carry the secret. */
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
