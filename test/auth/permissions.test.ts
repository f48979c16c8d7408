import { describe, expect, it } from "vitest";
import { Access } from "../../gen/tessera/v1/access_pb.js";
import {
  authorize,
  belongsTo,
  requireRecentSignIn,
  roleIn,
  type Situation,
} from "../../src/auth/permissions.ts";
import type { Principal } from "../../src/auth/principal.ts";
import { type Reason, toProblem } from "../../src/errors.ts";
import { DEPLOYMENT, OTHER_DEPLOYMENT, session, token } from "./principals.ts";

function outcome(principal: Principal, access: Access, situation: Situation): Reason | "yes" {
  try {
    authorize(principal, access, situation);
    return "yes";
  } catch (err) {
    return toProblem(err).reason;
  }
}

const personal = (access: Parameters<typeof token>[1], role: "admin" | "member" = "member") =>
  token("personal", access, { role });

/** Everyone who may call, in the organization `acme`. */
const PRINCIPALS = {
  anonymous: { kind: "anonymous" },
  shared: { kind: "shared" },
  stranger: session(),
  member: session("member"),
  admin: session("admin"),
  "member's developer token": personal("developer"),
  "admin's developer token": personal("developer", "admin"),
  "member's endpoint token": personal("endpoint"),
  "admin's endpoint token": personal("endpoint", "admin"),
  "member's token for both": personal("both"),
  "endpoint token for all": token("personal", "endpoint", { all: true }),
  "organization's developer token": token("organization", "developer"),
  "organization's endpoint token": token("organization", "endpoint"),
  "organization's token for both": token("organization", "both"),
  "monitoring token": token("organization", "monitoring"),
} as const satisfies Record<string, Principal>;

type Who = keyof typeof PRINCIPALS;
type Outcome = Reason | "yes";

const DENIED = "ACCESS_DENIED";
const NO_ONE = "TOKEN_MISSING";
/** Callers who may not see the deployments of the organization: theirs alone. */
const UNKNOWN = "DEPLOYMENT_NOT_FOUND";

/** In the organization of the request; endpoint: of a deployment with authorization on. */
const TABLE: Record<
  Who,
  Record<"session" | "developer" | "admin" | "endpoint" | "other" | "monitoring", Outcome>
> = {
  anonymous: row(NO_ONE, NO_ONE, NO_ONE, NO_ONE, NO_ONE, NO_ONE),
  shared: row(NO_ONE, NO_ONE, NO_ONE, NO_ONE, NO_ONE, NO_ONE),
  stranger: row(
    "yes",
    "ORGANIZATION_NOT_FOUND",
    "ORGANIZATION_NOT_FOUND",
    "DEPLOYMENT_NOT_FOUND",
    "DEPLOYMENT_NOT_FOUND",
    DENIED,
  ),
  member: row("yes", "yes", "ADMIN_REQUIRED", "yes", "yes", DENIED),
  admin: row("yes", "yes", "yes", "yes", "yes", DENIED),
  "member's developer token": tokenRow("yes", "ADMIN_REQUIRED", DENIED, DENIED),
  "admin's developer token": tokenRow("yes", "yes", DENIED, DENIED),
  "member's endpoint token": tokenRow(DENIED, DENIED, "yes", UNKNOWN),
  "admin's endpoint token": tokenRow(DENIED, DENIED, "yes", UNKNOWN),
  "member's token for both": tokenRow("yes", "ADMIN_REQUIRED", "yes", DENIED),
  "endpoint token for all": tokenRow(DENIED, DENIED, "yes", "yes"),
  "organization's developer token": tokenRow("yes", "ADMIN_REQUIRED", DENIED, DENIED),
  "organization's endpoint token": tokenRow(DENIED, DENIED, "yes", UNKNOWN),
  "organization's token for both": tokenRow("yes", "ADMIN_REQUIRED", "yes", DENIED),
  "monitoring token": { ...tokenRow(DENIED, DENIED, UNKNOWN, UNKNOWN), monitoring: "yes" },
};

function row(...outcomes: readonly [Outcome, Outcome, Outcome, Outcome, Outcome, Outcome]) {
  const [session, developer, admin, endpoint, other, monitoring] = outcomes;
  return { session, developer, admin, endpoint, other, monitoring };
}

function tokenRow(...outcomes: readonly [Outcome, Outcome, Outcome, Outcome]) {
  return row("SIGN_IN_REQUIRED", ...outcomes, DENIED);
}

const deployment = (id: { deploymentId: string; name: string }, authorization = true) => ({
  ...id,
  organizationId: "acme-id",
  organization: "acme",
  authorization,
});

describe.each(Object.entries(TABLE))("%s", (name, expected) => {
  const principal = PRINCIPALS[name as Who];
  const inAcme = { organizationId: "acme-id" };

  it("is no operator", () => {
    const isNobody = principal.kind === "anonymous" || principal.kind === "shared";
    expect(outcome(principal, Access.OPERATOR, inAcme)).toBe(
      isNobody ? NO_ONE : "OPERATOR_REQUIRED",
    );
  });

  it("has the access that the table says", () => {
    expect({
      session: outcome(principal, Access.SESSION, inAcme),
      developer: outcome(principal, Access.DEVELOPER, inAcme),
      admin: outcome(principal, Access.ADMIN, inAcme),
      endpoint: outcome(principal, Access.ENDPOINT, { deployment: deployment(DEPLOYMENT) }),
      other: outcome(principal, Access.ENDPOINT, { deployment: deployment(OTHER_DEPLOYMENT) }),
      monitoring: outcome(principal, Access.MONITORING, inAcme),
    }).toEqual(expected);
  });

  it("may call what is public, and a deployment without authorization", () => {
    const open = { deployment: deployment(OTHER_DEPLOYMENT, false) };
    expect(outcome(principal, Access.PUBLIC, {})).toBe("yes");
    expect(outcome(principal, Access.ENDPOINT, open)).toBe("yes");
  });

  it("may ask who it is if it is anyone", () => {
    const isNobody = name === "anonymous" || name === "shared";
    expect(outcome(principal, Access.AUTHENTICATED, {})).toBe(isNobody ? NO_ONE : "yes");
  });

  it("finds nothing of another organization", () => {
    const elsewhere = { organizationId: "other-id" };
    const foreign = { deployment: { ...deployment(DEPLOYMENT), organizationId: "other-id" } };
    const known = principal.kind === "session" || principal.kind === "token";
    const [hidden, gone] = known
      ? ["ORGANIZATION_NOT_FOUND", "DEPLOYMENT_NOT_FOUND"]
      : [NO_ONE, NO_ONE];
    expect(outcome(principal, Access.DEVELOPER, elsewhere)).toBe(hidden);
    expect(outcome(principal, Access.ADMIN, elsewhere)).toBe(hidden);
    expect(outcome(principal, Access.ENDPOINT, foreign)).toBe(gone);
    expect(outcome(principal, Access.ENDPOINT, {})).toBe(gone);
    expect(belongsTo(principal, "other-id")).toBe(false);
    expect(roleIn(principal, "other-id")).toBeUndefined();
  });

  it("may do nothing for which there is no rule", () => {
    expect(outcome(principal, Access.UNSPECIFIED, inAcme)).not.toBe("yes");
    expect(outcome(principal, 99 as Access, inAcme)).not.toBe("yes");
  });
});

describe("a server without people", () => {
  it.each([PRINCIPALS.anonymous, PRINCIPALS.shared])(
    "lets %j call its deployments",
    (principal) => {
      const situation = { standalone: true };
      for (const access of [Access.PUBLIC, Access.AUTHENTICATED, Access.ENDPOINT]) {
        expect(outcome(principal, access, situation)).toBe("yes");
      }
      for (const access of [
        Access.SESSION,
        Access.DEVELOPER,
        Access.ADMIN,
        Access.MONITORING,
        Access.OPERATOR,
      ]) {
        expect(outcome(principal, access, situation)).toBe(DENIED);
      }
    },
  );
});

describe("before the organization of a request is known", () => {
  it("only the credential decides", () => {
    expect(outcome(PRINCIPALS.stranger, Access.DEVELOPER, {})).toBe("yes");
    expect(outcome(PRINCIPALS.member, Access.ADMIN, {})).toBe("yes");
    expect(outcome(PRINCIPALS["member's developer token"], Access.ADMIN, {})).toBe(
      "ADMIN_REQUIRED",
    );
    expect(outcome(PRINCIPALS["member's endpoint token"], Access.DEVELOPER, {})).toBe(DENIED);
  });
});

describe("a recent sign-in", () => {
  it("is one within 10 minutes", () => {
    const person = { ...session("admin"), authenticatedAtMs: 1_000 };
    requireRecentSignIn(person, 1_000 + 600_000);
    expect(() => requireRecentSignIn(person, 1_000 + 600_001)).toThrow("confirm your password");
  });
});

describe("an operator", () => {
  it("has that access by a session, and no more of an organization than others", () => {
    const operator = { ...session(), operator: true };
    expect(outcome(operator, Access.OPERATOR, {})).toBe("yes");
    expect(outcome(operator, Access.DEVELOPER, { organizationId: "acme-id" })).toBe(
      "ORGANIZATION_NOT_FOUND",
    );
  });
});
