/**
 * The policy of outward connections of one deployment. A host passes two gates:
 * the deployment's `network` setting, before a name is resolved, and the class of
 * each address, after it. Deployments reach public addresses only; anything else
 * is refused unless the operator allows it. The address that was judged is the
 * one that is connected to, so a name that resolves differently the next time
 * (DNS rebinding) gains nothing.
 */
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { type Address, isInside, type Network, parseAddress } from "../../collections/networks.ts";
import type { NetworkSettings } from "../../storage/deployment-settings.ts";
import { type Asked, EgressRefusedError } from "./refusals.ts";
import { type HostRule, matchesAddress, matchesName, normalName, parseRule } from "./rules.ts";

/** A host that passed the first gate: an address, or a name to resolve. */
type Admitted =
  | { readonly kind: "address"; readonly address: Address }
  | { readonly kind: "name"; readonly name: string };

/** IPv6 that is assigned for public use; what is outside is reserved (RFC 4291, section 2.4). */
const GLOBAL_UNICAST: Network = ipaddr.parseCIDR("2000::/3");
/** Addresses that carry an IPv4 address which a translator then connects to (RFC 6052). */
const NAT64: Network = ipaddr.parseCIDR("64:ff9b::/96");
/** The metadata service of Azure, which has a public address. */
const AZURE_METADATA: Network = ipaddr.parseCIDR("168.63.129.16/32");

/** Names without a dot, and below domains that are nobody's in public (RFC 6761, RFC 6762, ICANN). */
const PRIVATE_NAME =
  /^[^.]+$|(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa)$/;

const WORDS: { readonly [range: string]: string } = {
  loopback: "a loopback address",
  linkLocal: "a link-local address, where clouds have their metadata",
  private: "a private address",
  uniqueLocal: "a private address",
  carrierGradeNat: "a private address",
  multicast: "a multicast address",
  broadcast: "a broadcast address",
  unspecified: "the unspecified address",
};

interface EgressPolicyOptions {
  /** The deployment's setting. */
  readonly network: NetworkSettings;
  /** Host rules of the operator: what deployments reach although it is not public. */
  readonly allowed: readonly string[];
  /** The addresses of this machine. Default: those of its interfaces, read each time. */
  readonly ownAddresses?: () => readonly string[];
}

export class EgressPolicy {
  readonly #access: NetworkSettings["access"];
  readonly #hosts: readonly HostRule[];
  readonly #allowed: readonly HostRule[];
  readonly #ownAddresses: () => readonly string[];

  /** A text that is no rule allows nothing. */
  constructor({ network, allowed, ownAddresses = interfaceAddresses }: EgressPolicyOptions) {
    this.#access = network.access;
    this.#hosts = network.hosts.flatMap((text) => parseRule(text) ?? []);
    this.#allowed = allowed.flatMap((text) => parseRule(text) ?? []);
    this.#ownAddresses = ownAddresses;
  }

  /** What the platform itself reaches: all that is public, and what the operator allows. */
  static ofPlatform(allowed: readonly string[]): EgressPolicy {
    return new EgressPolicy({ network: { access: "open", hosts: [] }, allowed });
  }

  /**
   * The first gate. A name is resolved only if it passes, because a query carries
   * data outward as well. Throws an `EgressRefusedError`.
   */
  admit({ host, port }: Asked): Admitted {
    if (this.#access === "none") {
      throw new EgressRefusedError(
        "this deployment has no network (network: none): set its network to open, or to allow with the hosts that it needs",
      );
    }
    const admitted = hostOf(host);
    const named = this.#hosts.some((rule) =>
      admitted.kind === "name"
        ? matchesName(rule, admitted.name, port)
        : matchesAddress(rule, admitted.address, port),
    );
    if (this.#access === "allow" && !named) {
      throw new EgressRefusedError(
        `${shown({ host, port })} is not among the hosts of this deployment's network setting: add it there`,
      );
    }
    return admitted;
  }

  /** Whether the operator allows this name or address, at some port, as it is written. */
  isAllowed(host: string): boolean {
    const address = parseAddress(host);
    return this.#allowed.some((rule) => {
      const port = rule.port ?? 0;
      return address === undefined
        ? matchesName(rule, host, port)
        : matchesAddress(rule, address, port);
    });
  }

  /** The second gate: why this address is refused; undefined when it may be connected to. */
  addressFault({ host, port }: Asked, resolved: Address): string | undefined {
    const address = translated(resolved);
    const name = normalName(host);
    const isAllowed = this.#allowed.some(
      (rule) =>
        matchesAddress(rule, address, port) ||
        (name !== undefined && matchesName(rule, name, port)),
    );
    const what = isAllowed ? undefined : this.#classOf(address);
    return what && `${shown({ host, port })} is ${refusedWithout(what)}`;
  }

  /**
   * Why a name is refused whose addresses only a proxy knows: those of private networks lead to
   * what is not public. Undefined when the proxy may decide.
   */
  nameFault({ host, port }: Asked): string | undefined {
    const name = normalName(host);
    const isAllowed =
      name !== undefined && this.#allowed.some((rule) => matchesName(rule, name, port));
    return name === undefined || isAllowed || !PRIVATE_NAME.test(name)
      ? undefined
      : `${shown({ host, port })} is ${refusedWithout("a name of private networks")}`;
  }

  #classOf(address: Address): string | undefined {
    if (!isPublic(address)) {
      return WORDS[address.range()] ?? "an address that is not public";
    }
    const own = this.#ownAddresses().some((text) => {
      const parsed = parseAddress(text);
      return parsed !== undefined && isInside(address, [parsed, parsed.toByteArray().length * 8]);
    });
    return own ? "an address of the platform's own machine" : undefined;
  }
}

/** Whether an address is for anybody on the internet. */
function isPublic(address: Address): boolean {
  return (
    address.range() === "unicast" &&
    !isInside(address, AZURE_METADATA) &&
    (address.kind() === "ipv4" || isInside(address, GLOBAL_UNICAST))
  );
}

/** The IPv4 address that a translator would connect to; any other address as it is. */
function translated(address: Address): Address {
  return isInside(address, NAT64) ? new ipaddr.IPv4(address.toByteArray().slice(12)) : address;
}

function hostOf(host: string): Admitted {
  const address = parseAddress(host);
  if (address !== undefined && !host.includes("%")) {
    return { kind: "address", address };
  }
  const name = normalName(host);
  if (name === undefined) {
    throw new EgressRefusedError(
      `${JSON.stringify(host.slice(0, 100))} is no host name or address`,
    );
  }
  return { kind: "name", name };
}

function refusedWithout(what: string): string {
  return `${what}, which deployments may not reach: ask the operator of the platform to allow it (tessera start --allow-egress)`;
}

function shown({ host, port }: Asked): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list = []) => list.map((one) => one.address));
}
