/**
 * Host rules: the hosts that a deployment, or the operator, allows. A rule is a
 * name (`api.example.com`), all names below one (`*.example.com`), an address or
 * a network (CIDR, RFC 4632), each with an optional port: `10.0.0.0/8:5432`,
 * `[2001:db8::1]:443`.
 */
import { type Address, isInside, type Network, parseNetwork } from "../../collections/networks.ts";

export interface HostRule {
  /** As it was written. */
  readonly text: string;
  /** Undefined: every port. */
  readonly port: number | undefined;
  readonly host:
    | { readonly kind: "name"; readonly name: string }
    | { readonly kind: "below"; readonly suffix: string }
    | { readonly kind: "network"; readonly network: Network };
}

/** Length of a rule: the longest name of DNS, brackets, a prefix and a port. */
const MAX_RULE_CHARACTERS = 270;
/** Length of a name in DNS (RFC 1035, section 2.3.4). */
const MAX_HOST_NAME_CHARACTERS = 253;
/** The highest port of TCP. */
const MAX_PORT_NUMBER = 65_535;

/** A label of DNS; underscores are in names that exist. */
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;

/** Parses a rule; undefined for any other text. */
export function parseRule(text: string): HostRule | undefined {
  if (text.length > MAX_RULE_CHARACTERS) {
    return undefined;
  }
  const { host, port } = splitPort(text);
  if (port !== undefined && (port < 1 || port > MAX_PORT_NUMBER)) {
    return undefined;
  }
  const parsed = parseHost(host);
  return parsed && { text, port, host: parsed };
}

/** Why a text is no rule, for a person; undefined when it is one. */
export function ruleFault(text: string): string | undefined {
  return parseRule(text) === undefined
    ? "must be a name, *.name, an address or a network, each with an optional port, such as api.example.com:443, *.example.com or 10.0.0.0/8"
    : undefined;
}

/** The name as rules compare it: lower case and without the dot at its end; undefined for no name. */
export function normalName(text: string): string | undefined {
  const name = text.toLowerCase().replace(/\.$/, "");
  const labels = name.split(".");
  // A last label of digits or of hexadecimal digits is a number that resolvers read as an address.
  const isNumber = /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "");
  return name.length <= MAX_HOST_NAME_CHARACTERS &&
    !isNumber &&
    labels.every((label) => LABEL.test(label))
    ? name
    : undefined;
}

/** Whether a rule names this host, a normal name, at this port. */
export function matchesName({ host, port }: HostRule, name: string, asked: number): boolean {
  if (port !== undefined && port !== asked) {
    return false;
  }
  switch (host.kind) {
    case "name":
      return host.name === name;
    case "below":
      return name.endsWith(host.suffix);
    case "network":
      return false;
  }
}

/** Whether a rule names the network of this address at this port. */
export function matchesAddress({ host, port }: HostRule, address: Address, asked: number): boolean {
  return (
    host.kind === "network" &&
    (port === undefined || port === asked) &&
    isInside(address, host.network)
  );
}

function splitPort(text: string): { readonly host: string; readonly port: number | undefined } {
  const [, bracketed, after] = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(text) ?? [];
  if (bracketed !== undefined) {
    // Brackets are for IPv6 only.
    const host = bracketed.includes(":") ? bracketed : "";
    return { host, port: after === undefined ? undefined : Number(after) };
  }
  const [, host = text, port] = /^([^:]*):(\d{1,5})$/.exec(text) ?? [];
  return { host, port: port === undefined ? undefined : Number(port) };
}

function parseHost(text: string): HostRule["host"] | undefined {
  const network = parseNetwork(text);
  if (network !== undefined) {
    return { kind: "network", network };
  }
  const isBelow = text.startsWith("*.");
  const name = normalName(isBelow ? text.slice(2) : text);
  if (name === undefined) {
    return undefined;
  }
  return isBelow ? { kind: "below", suffix: `.${name}` } : { kind: "name", name };
}
