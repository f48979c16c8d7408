import { describe, expect, it } from "vitest";
import {
  checkMadeByPerson,
  checkNoClimbing,
  checkNoClimbingUpdate,
  checkTokenOwner,
  type TokenWorth,
} from "../../src/auth/grants.ts";
import type { Principal } from "../../src/auth/principal.ts";
import { checkTokenFields, NO_ACCESS, tokenLetter } from "../../src/auth/token-rules.ts";
import { toProblem } from "../../src/errors.ts";
import type { TokenFields } from "../../src/storage/accounts/tokens.ts";
import { DEPLOYMENT, OTHER_DEPLOYMENT, session, token } from "./principals.ts";

const NOW_MS = Date.UTC(2026, 10, 20);

const DEVELOPER = {
  ...NO_ACCESS,
  developerOperations: true,
};
const ENDPOINT = {
  ...NO_ACCESS,
  protectedEndpoint: true,
};
const BOTH = {
  ...NO_ACCESS,
  developerOperations: true,
  protectedEndpoint: true,
};
const MONITORING = {
  ...NO_ACCESS,
  monitoring: true,
};

const FIELDS: TokenFields = {
  name: "laptop",
  description: "",
  access: DEVELOPER,
  allDeployments: false,
  deployments: [],
  expiresAtMs: NOW_MS + 1,
  notBeforeMs: undefined,
  allowedNetworks: [],
};

function violations(
  fields: Partial<TokenFields>,
  {
    kind = "personal" as "personal" | "organization",
    changed = undefined as never[] | undefined,
  } = {},
) {
  try {
    checkTokenFields(
      { ...FIELDS, ...fields },
      { kind, nowMs: NOW_MS, ...(changed && { changed: new Set(changed) }) },
    );
    return [];
  } catch (err) {
    const found = toProblem(err);
    expect(found.reason).toBe("REQUEST_INVALID");
    return found.violations.map(({ field }) => field);
  }
}

describe("a token", () => {
  it.each<[string, Partial<TokenFields>]>([
    ["developer operations", {}],
    ["endpoint of one deployment", { access: ENDPOINT, deployments: ["summarizer"] }],
    ["endpoint of all deployments", { access: ENDPOINT, allDeployments: true }],
    ["both", { access: BOTH, deployments: ["a", "b-c"] }],
    ["the longest name", { name: "\u{1f600}".repeat(100) }],
    ["networks", { allowedNetworks: ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"] }],
    ["a start", { notBeforeMs: NOW_MS }],
  ])("may have %s", (_what, fields) => {
    expect(violations(fields)).toEqual([]);
    expect(violations(fields, { kind: "organization" })).toEqual([]);
  });

  it("of an organization may be for monitoring", () => {
    expect(violations({ access: MONITORING }, { kind: "organization" })).toEqual([]);
  });

  it.each<[string, Partial<TokenFields>, string[]]>([
    ["no name", { name: "" }, ["name"]],
    ["a name of spaces", { name: "   " }, ["name"]],
    ["too long a name", { name: "x".repeat(101) }, ["name"]],
    ["a name with a line break", { name: "a\nb" }, ["name"]],
    ["too long a description", { description: "x".repeat(1_001) }, ["description"]],
    ["no access", { access: { ...DEVELOPER, developerOperations: false } }, ["access"]],
    ["monitoring in a personal token", { access: MONITORING }, ["access"]],
    ["monitoring with another access", { access: { ...DEVELOPER, monitoring: true } }, ["access"]],
    ["endpoint without deployments", { access: ENDPOINT }, ["deployments"]],
    [
      "some and all deployments",
      { access: ENDPOINT, allDeployments: true, deployments: ["a"] },
      ["deployments"],
    ],
    ["deployments without endpoint", { deployments: ["a"] }, ["deployments"]],
    ["all deployments without endpoint", { allDeployments: true }, ["all_deployments"]],
    ["no name of a deployment", { access: ENDPOINT, deployments: ["a", "B c"] }, ["deployments.1"]],
    ["a deployment twice", { access: ENDPOINT, deployments: ["a", "a"] }, ["deployments.1"]],
    [
      "too many deployments",
      { access: ENDPOINT, deployments: Array.from({ length: 1_001 }, (_, index) => `a${index}`) },
      ["deployments"],
    ],
    ["an end that is now", { expiresAtMs: NOW_MS }, ["expires_at"]],
    ["an end that is no time", { expiresAtMs: Number.NaN }, ["expires_at"]],
    ["an end beyond all dates", { expiresAtMs: Date.UTC(10_000, 0) }, ["expires_at"]],
    ["a start after its end", { notBeforeMs: NOW_MS + 1 }, ["not_before"]],
    ["a broken network", { allowedNetworks: ["10.0.0.0/8", "x"] }, ["allowed_networks.1"]],
    ["too many networks", { allowedNetworks: Array(101).fill("::/0") }, ["allowed_networks"]],
    [
      "all wrong at once",
      { name: "", expiresAtMs: 0, allowedNetworks: ["x"] },
      ["name", "expires_at", "allowed_networks.0"],
    ],
  ])("cannot have %s", (_what, fields, expected) => {
    expect(violations(fields)).toEqual(expected);
  });

  it("of an organization cannot have monitoring with another access", () => {
    const access = { ...ENDPOINT, monitoring: true };
    const fields = { access, allDeployments: true };
    expect(violations(fields, { kind: "organization" })).toEqual(["access"]);
  });

  it("that has expired can be renamed, and given another end", () => {
    const rules = { kind: "personal", nowMs: NOW_MS } as const;
    const expired = { ...FIELDS, expiresAtMs: NOW_MS - 1 };
    checkTokenFields(expired, { ...rules, changed: new Set(["name"] as const) });
    expect(() =>
      checkTokenFields(expired, { ...rules, changed: new Set(["expiresAtMs"] as const) }),
    ).toThrow("expires_at: must be in the future");
  });

  it("tells its kind by the letter in its value", () => {
    expect(tokenLetter("personal", DEVELOPER)).toBe("p");
    expect(tokenLetter("organization", ENDPOINT)).toBe("o");
    expect(tokenLetter("organization", MONITORING)).toBe("m");
  });
});

function reasonOf(action: () => unknown) {
  try {
    action();
    return "yes";
  } catch (err) {
    return toProblem(err).reason;
  }
}

describe("whose a token is", () => {
  const organizations = {
    kind: "organization",
    organizationId: "acme-id",
    userId: "ada-id",
  } as const;
  const adas = { kind: "personal", organizationId: "acme-id", userId: "ada-id" } as const;
  const bobs = { ...adas, userId: "bob-id" };

  it.each<[string, Principal, string, string, string]>([
    ["an admin", session("admin"), "yes", "yes", "ACCESS_DENIED"],
    ["a member", session("member"), "ADMIN_REQUIRED", "yes", "ACCESS_DENIED"],
    [
      "an admin's token",
      token("personal", "developer", { role: "admin" }),
      "yes",
      "yes",
      "ACCESS_DENIED",
    ],
    ["a member's token", token("personal", "developer"), "ADMIN_REQUIRED", "yes", "ACCESS_DENIED"],
    [
      "an organization's token",
      token("organization", "developer"),
      "ADMIN_REQUIRED",
      "ACCESS_DENIED",
      "ACCESS_DENIED",
    ],
    ["nobody", { kind: "anonymous" }, "ADMIN_REQUIRED", "ACCESS_DENIED", "ACCESS_DENIED"],
  ])("decides what %s may change", (_who, principal, ofOrganization, ofAda, ofBob) => {
    expect([
      reasonOf(() => checkTokenOwner(principal, organizations)),
      reasonOf(() => checkTokenOwner(principal, adas)),
      reasonOf(() => checkTokenOwner(principal, bobs)),
    ]).toEqual([ofOrganization, ofAda, ofBob]);
  });
});

describe("no climbing", () => {
  const worth = (worth: Partial<TokenWorth>): TokenWorth => ({
    access: DEVELOPER,
    allDeployments: false,
    deployments: [],
    allowedNetworks: [],
    expiresAtMs: 1_000,
    ...worth,
  });
  const one = { access: ENDPOINT, deployments: [DEPLOYMENT.name] };
  const other = { access: ENDPOINT, deployments: [DEPLOYMENT.name, OTHER_DEPLOYMENT.name] };
  const all = { access: ENDPOINT, allDeployments: true };
  const inside = { allowedNetworks: ["10.1.0.0/16"] };
  const outside = { allowedNetworks: ["10.1.0.0/16", "192.0.2.0/24"] };
  const developer = token("personal", "developer");
  const both = token("personal", "both");
  const forAll = token("personal", "both", { all: true });
  const inNetwork = token("personal", "developer", { networks: ["10.0.0.0/8"] });

  it.each<[string, Principal, Partial<TokenWorth>, boolean]>([
    ["a person: everything", session("member"), all, true],
    ["a developer token: its like", developer, {}, true],
    ["a developer token: an endpoint", developer, one, false],
    ["a developer token: all endpoints", developer, all, false],
    ["a developer token: both", developer, { ...one, access: BOTH }, false],
    [
      "an admin's developer token: monitoring",
      token("personal", "developer", { role: "admin" }),
      { access: MONITORING },
      false,
    ],
    ["a token for both: its deployment", both, { ...one, access: BOTH }, true],
    ["a token for both: less", both, {}, true],
    ["a token for both: another deployment", both, other, false],
    ["a token for both: all deployments", both, all, false],
    ["a token for all: all deployments", forAll, all, true],
    ["a token for all: any deployment", forAll, other, true],
    ["a token bound to a network: a part of it", inNetwork, inside, true],
    ["a token bound to a network: beyond it", inNetwork, outside, false],
    ["a token bound to a network: anywhere", inNetwork, {}, false],
    ["a token for anywhere: a network", developer, outside, true],
    ["a token: its own end", { ...developer, expiresAtMs: 1_000 }, {}, true],
    ["a token: a later end", { ...developer, expiresAtMs: 999 }, {}, false],
    [
      "a person: an end after that of their session",
      { ...session("member"), expiresAtMs: 1 },
      {},
      true,
    ],
  ])("%s: %#", (_what, principal, wanted, expected) => {
    expect(reasonOf(() => checkNoClimbing(principal, worth(wanted)))).toBe(
      expected ? "yes" : "ACCESS_DENIED",
    );
  });

  it.each<[string, Partial<TokenWorth>, Partial<TokenWorth>, boolean]>([
    ["nothing that counts", {}, {}, true],
    ["the end, to one of its own", { expiresAtMs: 400 }, { expiresAtMs: 500 }, true],
    ["the end, to a later one", { expiresAtMs: 400 }, { expiresAtMs: 501 }, false],
    ["the end of one that lives longer, to an earlier one", {}, { expiresAtMs: 900 }, true],
    ["the end of one that lives longer, to a later one", {}, { expiresAtMs: 1_001 }, false],
    ["the networks of one that lives longer, to fewer", {}, inside, true],
    ["the networks of one that lives longer, to more", inside, outside, false],
    [
      "the networks of one that ends with it, to more",
      { ...inside, expiresAtMs: 500 },
      { ...outside, expiresAtMs: 500 },
      true,
    ],
    ["one with more access, in anything", { ...one, access: BOTH }, {}, false],
  ])("a token changes of another %s: %#", (_what, before, after, expected) => {
    const changes = { before: worth(before), after: worth(after) };
    const caller = { ...developer, expiresAtMs: 500 };
    expect(reasonOf(() => checkNoClimbingUpdate(caller, changes))).toBe(
      expected ? "yes" : "ACCESS_DENIED",
    );
    expect(reasonOf(() => checkNoClimbingUpdate(session("member"), changes))).toBe("yes");
  });

  it("people let people in, and tokens do not", () => {
    expect(reasonOf(() => checkMadeByPerson(session("admin"), "x"))).toBe("yes");
    expect(reasonOf(() => checkMadeByPerson(forAll, "x"))).toBe("ACCESS_DENIED");
  });
});
