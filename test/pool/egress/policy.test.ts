import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAddress } from "../../../src/collections/networks.ts";
import { EgressPolicy } from "../../../src/pool/egress/policy.ts";
import type { NetworkSettings } from "../../../src/storage/deployment-settings.ts";

const OPEN: NetworkSettings = { access: "open", hosts: [] };

const policy = (allowed: string[] = [], network = OPEN) =>
  new EgressPolicy({ network, allowed, ownAddresses: () => ["8.8.4.4", "2600::7", "fe80::1%lo"] });

const fault = (address: string, allowed: string[] = [], port = 443): string | undefined => {
  const parsed = parseAddress(address);
  if (parsed === undefined) {
    throw new Error(`${address} is no address`);
  }
  return policy(allowed).addressFault({ host: address, port }, parsed);
};

/** Spellings of an IPv4 address that reach it, or a translator that reaches it. */
const FORMS: readonly ((bytes: readonly number[]) => string)[] = [
  (bytes) => bytes.join("."),
  (bytes) => `::ffff:${bytes.join(".")}`,
  (bytes) => `::ffff:${hex(bytes)}`,
  (bytes) => `0:0:0:0:0:FFFF:${hex(bytes)}`,
  (bytes) => `64:ff9b::${bytes.join(".")}`,
  (bytes) => `64:ff9b:1::${hex(bytes)}`,
  (bytes) => `2002:${hex(bytes)}::1`,
  (bytes) => `::${bytes.join(".")}`,
  (bytes) => `::ffff:0:${hex(bytes)}`,
];

function hex([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string {
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

describe("an address", () => {
  it.each(["8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"])(
    "%s is public and reached",
    (address) => {
      expect(fault(address)).toBeUndefined();
    },
  );

  it.each([
    ["127.0.0.1", "loopback"],
    ["127.255.1.2", "loopback"],
    ["::1", "loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["64:ff9b::7f00:1", "loopback"],
    ["169.254.169.254", "link-local"],
    ["::ffff:169.254.169.254", "link-local"],
    ["64:ff9b::a9fe:a9fe", "link-local"],
    ["fe80::1", "link-local"],
    ["fd00:ec2::254", "private"],
    ["10.1.2.3", "private"],
    ["172.31.0.1", "private"],
    ["192.168.1.1", "private"],
    ["100.100.100.200", "private"],
    ["fc00::1", "private"],
    ["224.0.0.1", "multicast"],
    ["ff02::1", "multicast"],
    ["255.255.255.255", "broadcast"],
    ["0.0.0.0", "unspecified"],
    ["::", "unspecified"],
    ["0.1.2.3", "not"],
    ["240.0.0.1", "not public"],
    ["192.0.2.1", "not public"],
    ["198.18.0.1", "not public"],
    ["168.63.129.16", "not public"],
    ["2002:7f00:1::", "not public"],
    ["2001::1", "not public"],
    ["4000::1", "not public"],
    ["8.8.4.4", "platform's own machine"],
    ["::ffff:8.8.4.4", "platform's own machine"],
    ["64:ff9b::8.8.4.4", "platform's own machine"],
    ["2600::7", "platform's own machine"],
  ])("%s is refused as %s", (address, word) => {
    expect(fault(address)).toContain(word);
    expect(fault(address)).toContain("tessera start --allow-egress");
  });

  it("that is not public is refused in every form", () => {
    const inside = fc.oneof(
      fc.tuple(fc.constantFrom(10, 127, 0), byte(), byte(), byte()),
      fc.tuple(fc.constant(169), fc.constant(254), byte(), byte()),
      fc.tuple(fc.constant(192), fc.constant(168), byte(), byte()),
      fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), byte(), byte()),
      fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), byte(), byte()),
      fc.tuple(fc.integer({ min: 224, max: 255 }), byte(), byte(), byte()),
    );
    fc.assert(
      fc.property(inside, fc.constantFrom(...FORMS), (bytes, form) => {
        expect(fault(form(bytes))).toBeDefined();
      }),
    );
  });

  it("is reached if the operator allows it, at the allowed port", () => {
    expect(fault("10.1.2.3", ["10.0.0.0/8"])).toBeUndefined();
    expect(fault("::ffff:10.1.2.3", ["10.0.0.0/8"])).toBeUndefined();
    expect(fault("64:ff9b::10.1.2.3", ["10.0.0.0/8"])).toBeUndefined();
    expect(fault("127.0.0.1", ["127.0.0.1:5432"], 5432)).toBeUndefined();
    expect(fault("127.0.0.1", ["127.0.0.1:5432"], 5433)).toContain("loopback");
    expect(fault("8.8.4.4", ["8.8.4.4"])).toBeUndefined();
  });
});

function byte() {
  return fc.integer({ min: 0, max: 255 });
}

describe("the network setting", () => {
  it("none admits no host, not even what the operator allows", () => {
    const none = policy(["10.0.0.0/8"], { access: "none", hosts: [] });
    expect(() => none.admit({ host: "10.0.0.1", port: 80 })).toThrow("network: none");
  });

  it("allow admits its hosts only, and no address that is not public", () => {
    const some = policy([], { access: "allow", hosts: ["*.example.com:443", "10.0.0.0/8"] });
    expect(some.admit({ host: "API.example.com.", port: 443 })).toEqual({
      kind: "name",
      name: "api.example.com",
    });
    expect(() => some.admit({ host: "api.example.com", port: 80 })).toThrow("not among the hosts");
    expect(() => some.admit({ host: "example.org", port: 443 })).toThrow("not among the hosts");
    const admitted = some.admit({ host: "10.0.0.1", port: 80 });
    expect(admitted.kind).toBe("address");
    expect(
      admitted.kind === "address" &&
        some.addressFault({ host: "10.0.0.1", port: 80 }, admitted.address),
    ).toContain("private");
  });

  it("admits a name of the operator's at whatever address it has", () => {
    const address = parseAddress("127.0.0.1");
    const asked = { host: "DB.internal", port: 5432 };
    expect(address && policy(["db.internal"]).addressFault(asked, address)).toBeUndefined();
    expect(address && policy().addressFault(asked, address)).toContain("loopback");
  });

  it.each(["2130706433", "0x7f.1", "127.1", "0177.0.0.1", "1.2.3.4.", "fe80::1%eth0", "a b", ""])(
    "%j is neither a name nor an address",
    (host) => {
      expect(() => policy().admit({ host, port: 80 })).toThrow("no host name or address");
    },
  );
});

it("knows which names of a loopback the operator allows, by name or address alone", () => {
  const network = { access: "open", hosts: [] } as const;
  const policy = new EgressPolicy({ network, allowed: ["127.0.0.1:5432", "*.example.com"] });
  const hosts = ["localhost", "127.0.0.1", "::1"];
  expect(hosts.map((host) => policy.isAllowed(host))).toEqual([false, true, false]);
  const named = new EgressPolicy({ network, allowed: ["localhost", "::/0"] });
  expect(hosts.map((host) => named.isAllowed(host))).toEqual([true, false, true]);
});
