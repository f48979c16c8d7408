import { BlockList, isIPv4 } from "node:net";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import {
  addressGroup,
  isWithin,
  Networks,
  networkProblem,
  parseAddress,
} from "../../src/collections/networks.ts";
import { shown } from "../auth/shown.ts";

const address = fc.oneof(fc.ipV4(), fc.ipV6());

/** Bits beyond the prefix set to 0, as text. */
function network(text: string, prefix: number): string {
  const parsed = parseAddress(text);
  if (parsed === undefined) {
    throw new Error(text);
  }
  const bytes = parsed.toByteArray();
  const bits = bytes.map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const kept = bits.slice(0, prefix).padEnd(bits.length, "0");
  const start = bytes.map((_, index) => Number.parseInt(kept.slice(8 * index, 8 * index + 8), 2));
  return `${ipaddr.fromByteArray(start).toString()}/${prefix}`;
}

describe("networks", () => {
  it("contain what Node's own list of networks contains", () => {
    fc.assert(
      fc.property(
        address,
        address,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (base, asked, part) => {
          const prefix = Math.round(part * (parseAddress(base)?.kind() === "ipv4" ? 32 : 128));
          const list = new BlockList();
          const text = network(base, prefix);
          const [start = ""] = text.split("/");
          list.addSubnet(start, prefix, isIPv4(start) ? "ipv4" : "ipv6");
          // Unlike there, an IPv4 address is in no IPv6 network.
          const isComparable = parseAddress(asked)?.kind() === parseAddress(base)?.kind();
          expect(new Networks([text]).includes(asked)).toBe(
            isComparable && list.check(asked, isIPv4(asked) ? "ipv4" : "ipv6"),
          );
          expect(new Networks([text]).includes(base)).toBe(true);
          expect(networkProblem(text)).toBeUndefined();
        },
      ),
    );
  });

  it.each([
    ["10.0.0.0/8", "10.255.255.255", true],
    ["10.0.0.0/8", "11.0.0.0", false],
    ["10.0.0.0/8", "::ffff:10.1.2.3", true],
    ["10.0.0.0/8", "::ffff:0a01:0203", true],
    ["::ffff:10.0.0.0/104", "10.1.2.3", true],
    ["192.0.2.1", "192.0.2.1", true],
    ["192.0.2.1", "192.0.2.2", false],
    ["0.0.0.0/0", "203.0.113.7", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["::/0", "2001:db8::1", true],
    ["::/0", "203.0.113.7", false],
    ["10.0.0.0/8", "::10.1.2.3", false],
    ["::/96", "::10.1.2.3", true],
    ["2001:db8::/32", "2001:db8:ffff::1", true],
    ["2001:db8::/32", "2001:db9::1", false],
    ["fe80::/10", "fe80::1%eth0", true],
    ["::1", "0:0:0:0:0:0:0:1", true],
    ["1.2.3.4/32", "1.2.3.4", true],
  ])("%s includes %s: %s", (text, asked, expected) => {
    expect(networkProblem(text)).toBeUndefined();
    expect(new Networks([text]).includes(asked)).toBe(expected);
  });

  it.each(["", "unknown", "10.0.0", "10.0.0.0.0", "/var/run/socket", "10.0.0.1/8", "::1::"])(
    "do not include what is no address: %j",
    (asked) => {
      expect(new Networks(["0.0.0.0/0", "::/0"]).includes(asked)).toBe(false);
    },
  );

  it.each(
    shown(
      "",
      "10.0.0.0/33",
      "10.0.0.0/-1",
      "10.0.0.0/",
      "10.0.0.0/8/8",
      "::/129",
      "010.0.0.0/8",
      "10.0.0.1/8",
      "2001:db8::1/32",
      "::ffff:10.0.0.0/95",
      "fe80::1%eth0/64",
      "example.com",
      "10.0.0.0/8 ",
      "x".repeat(100_000),
    ),
  )("are not %s, and it is said what is wrong", (_shown, text) => {
    expect(networkProblem(text)).toMatch(/must be a network|bits set/);
  });

  it("that are broken let nobody in", () => {
    expect(new Networks(["nonsense"]).includes("10.0.0.1")).toBe(false);
  });
});

describe("a network", () => {
  it.each([
    ["10.1.0.0/16", ["10.0.0.0/8"], true],
    ["10.0.0.0/8", ["10.0.0.0/8"], true],
    ["10.0.0.0/7", ["10.0.0.0/8"], false],
    ["11.0.0.0/8", ["10.0.0.0/8", "11.0.0.0/8"], true],
    ["10.0.0.0/8", ["::/0"], false],
    ["2001:db8:1::/48", ["2001:db8::/32"], true],
    ["nonsense", ["0.0.0.0/0"], false],
    ["10.0.0.0/8", [], false],
  ])("%s is within %j: %s", (inner, outer, expected) => {
    expect(isWithin(inner, outer)).toBe(expected);
  });
});

describe("addresses that count together", () => {
  it.each([
    ["192.0.2.1", "::ffff:192.0.2.1", true],
    ["192.0.2.1", "192.0.2.2", false],
    ["2001:db8:1:2::1", "2001:db8:1:2:ffff::2", true],
    ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
    ["", "unknown", true],
  ])("%s and %s: %s", (one, other, expected) => {
    expect(addressGroup(one) === addressGroup(other)).toBe(expected);
  });
});
