/**
 * Addresses and networks (CIDR, RFC 4632; IPv6 text, RFC 4291). An IPv4
 * address that comes as IPv6 (`::ffff:192.0.2.1`, which is how a socket that
 * serves both reports it) is the IPv4 address.
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

/** Reads an address, without the zone of a link-local one; undefined for what is none. */
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
 * What is wrong with a network that was typed, for a person; undefined when it
 * is right. An address stands for itself alone.
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

/** Whether every address of `inner` is in one of `outer`. Both must be right. */
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

/** Whether some address is in both of two networks. Both must be right. */
export function overlaps(one: string, other: string): boolean {
  return isWithin(one, [other]) || isWithin(other, [one]);
}

/** Networks, read once for many checks. */
export class Networks {
  readonly #networks: readonly Network[];

  /** A text that is no network lets nobody in. */
  constructor(texts: readonly string[]) {
    this.#networks = texts.flatMap((text) => parseNetwork(text) ?? []);
  }

  includes(address: string): boolean {
    const parsed = parseAddress(address);
    return parsed !== undefined && this.#networks.some((network) => contains(network, parsed));
  }
}

/**
 * Who an address stands for when attempts are counted: an IPv4 address for
 * itself, an IPv6 one for its /64, of which one machine has every address.
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

/** The network that somebody may have many addresses of: an IPv4 address's /24, an IPv6 one's /48. */
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
  // The prefix of a mapped network counts the 96 bits in front, too.
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

/** Of text that `isIP` has found to be IPv6. */
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
