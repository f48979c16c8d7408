import { describe, expect, it } from "vitest";
import { parseAddress } from "../../../src/collections/networks.ts";
import { matchesAddress, matchesName, parseRule } from "../../../src/pool/egress/rules.ts";

const matches = (text: string, host: string, port: number): boolean => {
  const rule = parseRule(text);
  const address = parseAddress(host);
  if (rule === undefined) {
    throw new Error(`${text} is no rule`);
  }
  return address ? matchesAddress(rule, address, port) : matchesName(rule, host, port);
};

describe("a host rule", () => {
  it.each([
    ["api.example.com", "api.example.com", 443],
    ["API.Example.com.", "api.example.com", 443],
    ["api.example.com:443", "api.example.com", 443],
    ["*.example.com", "a.b.example.com", 80],
    ["192.0.2.1", "192.0.2.1", 1],
    ["192.0.2.0/24:5432", "192.0.2.77", 5432],
    ["2001:db8::/32", "2001:db8::1", 443],
    ["[2001:db8::1]:443", "2001:db8::1", 443],
    ["[2001:db8::/32]", "2001:db8:1::", 443],
    ["::ffff:192.0.2.0/120", "192.0.2.9", 443],
    ["0.0.0.0/0", "192.0.2.9", 443],
  ])("%s names %s port %i", (rule, host, port) => {
    expect(matches(rule, host, port)).toBe(true);
  });

  it.each([
    ["api.example.com", "example.com", 443],
    ["api.example.com", "x.api.example.com", 443],
    ["api.example.com:443", "api.example.com", 80],
    ["*.example.com", "example.com", 80],
    ["*.example.com", "badexample.com", 80],
    ["192.0.2.0/24:5432", "192.0.2.77", 5433],
    ["192.0.2.0/24", "192.0.3.1", 80],
    ["0.0.0.0/0", "2001:db8::1", 443],
    ["0.0.0.0/0", "api.example.com", 443],
  ])("%s does not name %s port %i", (rule, host, port) => {
    expect(matches(rule, host, port)).toBe(false);
  });

  it.each([
    "",
    "*",
    "*.",
    "a*.example.com",
    "https://example.com",
    "example.com/path",
    "example.com:0",
    "example.com:65536",
    "10.0.0.0/33",
    "::ffff:10.0.0.0/90",
    "10.0.0",
    "0x7f000001",
    "1.2.3.4.5",
    "[10.0.0.1]:1",
    "[example.com]:1",
    "-a.example.com",
    "a b",
    "a\0b",
    "a".repeat(64),
    "a.".repeat(200),
  ])("is not %j", (text) => {
    expect(parseRule(text)).toBeUndefined();
  });
});
