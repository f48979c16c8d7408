import { describe, expect, it } from "vitest";
import { remembering, trustedAddresses } from "../../src/server/proxies.ts";

describe("trusted addresses", () => {
  it("are those of the proxies' networks, however they are written", () => {
    const networks = ["10.0.0.0/8", "2001:db8::/32"];
    const trusts = trustedAddresses({ networks, hasSecret: false, ownAddresses: () => [] });
    expect(["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"].map(trusts)).toEqual([true, true, true]);
    expect(["11.0.0.1", "2001:db9::1", "", "unknown"].map(trusts)).toEqual(Array(4).fill(false));
  });

  it("are none of this machine, unless proxies prove who they are", () => {
    const networks = ["10.0.0.0/8"];
    const ownAddresses = () => ["127.0.0.1", "10.0.0.5"];
    const byAddress = trustedAddresses({ networks, hasSecret: false, ownAddresses });
    expect(["10.0.0.4", "10.0.0.5", "::ffff:10.0.0.5"].map(byAddress)).toEqual([
      true,
      false,
      false,
    ]);
    const bySecret = trustedAddresses({ networks, hasSecret: true, ownAddresses });
    expect(bySecret("10.0.0.5", 0)).toBe(true);
  });

  it("are none of this machine behind the proxy that has the secret, where deployments come from, too", () => {
    const trusts = trustedAddresses({
      networks: ["127.0.0.0/8", "::1", "10.0.0.0/8"],
      hasSecret: true,
      ownAddresses: () => ["127.0.0.1", "::1", "10.0.0.5"],
    });
    for (const own of ["127.0.0.1", "127.9.9.9", "::1", "10.0.0.5", "::ffff:10.0.0.5"]) {
      expect([trusts(own, 0), trusts(own, 1), trusts(own, 2)], own).toEqual([true, false, false]);
    }
    expect([trusts("10.0.0.4", 0), trusts("10.0.0.4", 1)]).toEqual([true, true]);
  });

  it("are told apart also where a caller names more than an address, or has gone", () => {
    const networks = ["10.0.0.0/8"];
    const trusts = trustedAddresses({ networks, hasSecret: false, ownAddresses: () => [] });
    expect(trusts("10.0.0.1".repeat(2_000), 1)).toBe(false);
    expect(trusts(undefined, 0)).toBe(false);
  });

  it("follow the machine when it gets another address", () => {
    let nowMs = 0;
    let own = ["10.0.0.5"];
    const trusts = trustedAddresses({
      networks: ["10.0.0.0/8"],
      hasSecret: false,
      ownAddresses: () => own,
      monotonicMs: () => nowMs,
    });
    expect(trusts("10.0.0.6", 0)).toBe(true);
    own = ["10.0.0.6"];
    nowMs = 30_000;
    expect([trusts("10.0.0.6", 0), trusts("10.0.0.5", 0)]).toEqual([false, true]);
  });
});

it("answers are remembered for texts that can be addresses, and for nothing longer", () => {
  const asked: string[] = [];
  const answer = remembering((address) => asked.push(address) > 0);
  const longest = "0000:0000:0000:0000:0000:ffff:255.255.255.255";
  for (const address of [longest, longest, `${longest}0`, `${longest}0`]) {
    expect(answer(address)).toBe(true);
  }
  expect(asked).toEqual([longest, `${longest}0`, `${longest}0`]);
});
