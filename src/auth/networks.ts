/**
 * IP addresses and networks (CIDR, RFC 4632; IPv6 text, RFC 4291). An
 * IPv4-mapped address (`::ffff:192.0.2.1`, as a dual-stack socket reports it)
 * is treated as the IPv4 address.
 */
import { isIP } from "node:net";

interface Address {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

interface Network extends Address {
  readonly prefix: number;
}

const MAPPED_PREFIX = 0xffffn << 32n;

/** Parses an address without the zone of a link-local one; undefined when it is not an address. */
export function parseAddress(text: string): Address | undefined {
  const [bare = ""] = text.split("%");
  switch (isIP(bare)) {
    case 4:
      return { bits: 32, value: ipv4(bare) };
    case 6: {
      const value = ipv6(bare);
      return value >> 32n === MAPPED_PREFIX >> 32n
        ? { bits: 32, value: value & 0xffff_ffffn }
        : { bits: 128, value };
    }
    default:
      return undefined;
  }
}

/**
 * Describes the fault of a network for a person; undefined when it is valid. A
 * bare address is a network of one.
 */
export function networkProblem(text: string): string | undefined {
  const network = parseNetwork(text);
  if (network === undefined) {
    return "must be a network such as 10.0.0.0/8 or 2001:db8::/32";
  }
  return network.value === masked(network).value
    ? undefined
    : `has address bits set beyond its prefix of ${network.prefix}`;
}

/** Whether `inner` lies within one of `outer`. All must be valid. */
export function isWithin(inner: string, outer: readonly string[]): boolean {
  const network = parseNetwork(inner);
  return (
    network !== undefined &&
    outer.some((text) => {
      const around = parseNetwork(text);
      return around !== undefined && around.prefix <= network.prefix && contains(around, network);
    })
  );
}

/** Whether two networks overlap. Both must be valid. */
export function overlaps(one: string, other: string): boolean {
  return isWithin(one, [other]) || isWithin(other, [one]);
}

/** A list of networks, parsed once for many checks. */
export class Networks {
  readonly #networks: readonly Network[];

  /** An invalid network matches no address. */
  constructor(texts: readonly string[]) {
    this.#networks = texts.flatMap((text) => parseNetwork(text) ?? []);
  }

  includes(address: string): boolean {
    const parsed = parseAddress(address);
    return parsed !== undefined && this.#networks.some((network) => contains(network, parsed));
  }
}

/**
 * The group that an address counts in for rate limits: an IPv4 address alone,
 * an IPv6 address with its /64, because one machine owns all of that.
 */
export function addressGroup(text: string): string {
  const address = parseAddress(text);
  if (address === undefined) {
    return "unknown";
  }
  return address.bits === 32
    ? `4/${address.value.toString(16)}`
    : `6/${(address.value >> 64n).toString(16)}`;
}

/**
 * The network in which one attacker may own many addresses: the /24 of an IPv4
 * address, the /48 of an IPv6 address.
 */
export function addressNetwork(text: string): string {
  const address = parseAddress(text);
  if (address === undefined) {
    return "unknown";
  }
  return address.bits === 32
    ? `4/${(address.value >> 8n).toString(16)}/24`
    : `6/${(address.value >> 80n).toString(16)}/48`;
}

function parseNetwork(text: string): Network | undefined {
  const [, address = "", length] = /^([0-9A-Fa-f:.]{2,45})(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const parsed = parseAddress(address);
  if (parsed === undefined) {
    return undefined;
  }
  const written = isIP(address) === 4 ? 32 : 128;
  const given = length === undefined ? written : Number(length);
  // The prefix of a mapped network includes the 96 bits in front.
  const prefix = given - (written - parsed.bits);
  return given <= written && prefix >= 0 ? { ...parsed, prefix } : undefined;
}

function contains(network: Network, { bits, value }: Address): boolean {
  const shift = BigInt(network.bits - network.prefix);
  return network.bits === bits && network.value >> shift === value >> shift;
}

function masked(network: Network): Network {
  const shift = BigInt(network.bits - network.prefix);
  return { ...network, value: (network.value >> shift) << shift };
}

function ipv4(text: string): bigint {
  return text.split(".").reduce((value, part) => (value << 8n) | BigInt(part), 0n);
}

/** Parses text that `isIP` has found to be IPv6. */
function ipv6(text: string): bigint {
  const dotted = text.lastIndexOf(".") < 0 ? undefined : text.slice(text.lastIndexOf(":") + 1);
  const hex =
    dotted === undefined
      ? text
      : text.slice(0, -dotted.length) +
        `${(ipv4(dotted) >> 16n).toString(16)}:${(ipv4(dotted) & 0xffffn).toString(16)}`;
  const [head = [], tail = []] = hex
    .split("::")
    .map((half) => half.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill("0");
  return [...head, ...zeros, ...tail].reduce(
    (value, group) => (value << 16n) | BigInt(`0x${group}`),
    0n,
  );
}
