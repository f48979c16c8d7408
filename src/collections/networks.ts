/**
 * IP addresses and networks (CIDR, RFC 4632; IPv6 text, RFC 4291). An IPv4-mapped address
 * (`::ffff:192.0.2.1`, as a dual-stack socket reports it) is treated as the IPv4 address. Which
 * text is an address is decided by Node, because the library also takes `0x7f.1` and `010.0.0.1`.
 */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** An address and the length of the prefix that its network shares with it. */
export type Network = [Address, number];

/** Parses an address without the zone of a link-local one; undefined when it is not an address. */
export function parseAddress(text: string): Address | undefined {
  const [bare = ""] = text.split("%");
  // Without a group in front, the library takes `::192.0.2.1` for an IPv4-mapped address.
  const written = /^::[\d.]+$/.test(bare) ? `0${bare}` : bare;
  return isIP(bare) === 0 ? undefined : ipaddr.process(written);
}

/** Parses a network, or an address, which is a network of one; undefined when it is neither. */
export function parseNetwork(text: string): Network | undefined {
  const [, written = "", length] = /^([0-9A-Fa-f:.]{2,45})(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = parseAddress(written);
  if (address === undefined) {
    return undefined;
  }
  const bits = isIP(written) === 4 ? 32 : 128;
  const given = length === undefined ? bits : Number(length);
  // The prefix of a mapped network includes the 96 bits in front.
  const prefix = given - (bits - bitsOf(address));
  return given <= bits && prefix >= 0 ? [address, prefix] : undefined;
}

/** Whether an address is in a network. */
export function isInside(address: Address, [network, prefix]: Network): boolean {
  return address.kind() === network.kind() && address.match(network, prefix);
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
  const [address, prefix] = network;
  const isBeyond = address
    .toByteArray()
    .some((byte, index) => ((byte << Math.min(8, Math.max(0, prefix - 8 * index))) & 0xff) !== 0);
  return isBeyond ? `has address bits set beyond its prefix of ${prefix}` : undefined;
}

/** Whether `inner` lies within one of `outer`. All must be valid. */
export function isWithin(inner: string, outer: readonly string[]): boolean {
  const network = parseNetwork(inner);
  return (
    network !== undefined &&
    outer.some((text) => {
      const around = parseNetwork(text);
      return around !== undefined && around[1] <= network[1] && isInside(network[0], around);
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
    this.#networks = texts.flatMap((text) => {
      const network = parseNetwork(text);
      return network ? [network] : [];
    });
  }

  includes(address: string): boolean {
    const parsed = parseAddress(address);
    return parsed !== undefined && this.#networks.some((network) => isInside(parsed, network));
  }
}

/**
 * The group that an address counts in for rate limits: an IPv4 address alone,
 * an IPv6 address with its /64, because one machine owns all of that.
 */
export function addressGroup(text: string): string {
  return startOf(text, { ipv4: 4, ipv6: 8 });
}

/**
 * The network in which one attacker may own many addresses: the /24 of an IPv4
 * address, the /48 of an IPv6 address.
 */
export function addressNetwork(text: string): string {
  return startOf(text, { ipv4: 3, ipv6: 6 });
}

/** This many bytes of an address, as text. */
function startOf(text: string, bytes: Record<"ipv4" | "ipv6", number>): string {
  const address = parseAddress(text);
  return address === undefined
    ? "unknown"
    : Buffer.from(address.toByteArray().slice(0, bytes[address.kind()])).toString("hex");
}

function bitsOf(address: Address): number {
  return address.kind() === "ipv4" ? 32 : 128;
}
