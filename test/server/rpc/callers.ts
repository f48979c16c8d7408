/** Everyone who may try to call a method, and what the method's access says to them. */
import { Access } from "../../../gen/tessera/v1/access_pb.js";
import { digestCode } from "../../../src/auth/one-time-codes.ts";
import { newSession } from "../../../src/auth/session-cookie.ts";
import { NO_ACCESS } from "../../../src/auth/token-rules.ts";
import type { Reason } from "../../../src/errors.ts";
import type { TestPlatform } from "./platform.ts";
import {
  type Company,
  type MadeToken,
  newCompany,
  newMember,
  newToken,
  type Person,
} from "./world.ts";

export type Outcome = Reason | "ok";

/** In the order in which they call: first those who are refused, last those who may change the most. */
export const CALLERS = [
  "nobody",
  "a mistyped token",
  "a token that was never made",
  "an expired token",
  "a deleted token",
  "a token that is not valid yet",
  "a token from another network",
  "a token of someone who left",
  "an ended session",
  "a monitoring token",
  "a token with other access",
  "a launch token",
  "an organization token",
  "a member's personal token",
  "an admin's personal token",
  "a token of another organization",
  "an admin of another organization",
  "an admin of another organization, not naming one",
  "an admin",
  "a member",
] as const;

export type CallerName = (typeof CALLERS)[number];

/** The organization that calls are about, and who tries. */
export interface Cast {
  readonly company: Company;
  readonly member: Person;
  readonly adminToken: MadeToken;
  readonly headers: Readonly<Record<CallerName, Readonly<Record<string, string>>>>;
}

const NEVER_MADE = "tsrp_0000000000000000000000000000001Fnuhi";

export async function assemble(platform: TestPlatform): Promise<Cast> {
  const { accounts } = platform;
  const company = await newCompany(platform);
  const { organizationId, admin } = company;
  await accounts.updateOrganization({
    ...platform.deed(),
    organizationId,
    monitoringEnabled: true,
  });
  const rival = await newCompany(platform);
  const member = await newMember(platform, company);
  const leaver = await newMember(platform, company);
  const leaverToken = await newToken(platform, company, {
    kind: "personal",
    userId: leaver.userId,
  });
  const left = { organizationId, userId: leaver.userId, left: true };
  await accounts.removeMember({ ...platform.deed(), ...left });
  const personal = { kind: "personal", userId: admin.userId } as const;
  const token = (options: Parameters<typeof newToken>[2] = {}) =>
    newToken(platform, company, { ...personal, ...options });
  const adminToken = await token();
  const deleted = await token();
  const { tokenId } = deleted;
  await accounts.deleteToken({ ...platform.deed(), organizationId, tokenId });
  const now = platform.now();
  const monitoring = { ...NO_ACCESS, monitoring: true };
  const endpoint = { ...NO_ACCESS, protectedEndpoint: true };
  const { headers: ended } = await newMember(platform, company);
  const { value } = adminToken;
  const typo = value.slice(0, -1) + (value.endsWith("A") ? "B" : "A");
  const found = await endSession(platform, ended);
  const headers = {
    nobody: {},
    "a mistyped token": { authorization: `Bearer ${typo}` },
    "a token that was never made": { authorization: `Bearer ${NEVER_MADE}` },
    "an expired token": (await token({ expiresAtMs: now - 1 })).headers,
    "a deleted token": deleted.headers,
    "a token that is not valid yet": (await token({ notBeforeMs: now + 600_000 })).headers,
    "a token from another network": (await token({ allowedNetworks: ["203.0.113.0/24"] })).headers,
    "a token of someone who left": leaverToken.headers,
    "an ended session": found,
    "a monitoring token": (await newToken(platform, company, { access: monitoring })).headers,
    "a token with other access": (
      await newToken(platform, company, { access: endpoint, allDeployments: true })
    ).headers,
    "a launch token": (
      await newToken(platform, company, {
        access: { ...NO_ACCESS, launch: true },
        allDeployments: true,
      })
    ).headers,
    "an organization token": (await newToken(platform, company)).headers,
    "a member's personal token": (
      await newToken(platform, company, { kind: "personal", userId: member.userId })
    ).headers,
    "an admin's personal token": adminToken.headers,
    "a token of another organization": (
      await newToken(platform, rival, { kind: "personal", userId: rival.admin.userId })
    ).headers,
    "an admin of another organization": rival.admin.headers,
    "an admin of another organization, not naming one": await anotherSession(platform, rival.admin),
    "an admin": admin.headers,
    "a member": member.headers,
  };
  return { company, member, adminToken, headers };
}

async function endSession(platform: TestPlatform, headers: { readonly cookie: string }) {
  const { accounts } = platform;
  const digest = digestCode(headers.cookie.split("=")[1] ?? "");
  const found = await accounts.findSession({ digest, nowMs: platform.now() });
  const sessionId = found?.sessionId ?? "";
  await accounts.closeSession({ ...platform.deed(), sessionId });
  return headers;
}

async function anotherSession(platform: TestPlatform, { userId }: Person) {
  const { value, session } = newSession(platform.now());
  platform.secrets.add(value);
  await platform.accounts.openSession({ ...platform.deed(), userId, session });
  return { cookie: `__Host-tessera_session=${value}` };
}

const UNAUTHENTICATED: ReadonlySet<Outcome> = new Set(["TOKEN_MISSING", "TOKEN_INVALID"]);

/** What each caller is answered, by the method's access alone; `ok` is what a right caller gets. */
export function expectedOutcome(access: Access, caller: CallerName): Outcome {
  if (access === Access.PUBLIC) {
    return "ok";
  }
  if (access === Access.OPERATOR) {
    const known = expectedOutcome(Access.AUTHENTICATED, caller);
    return UNAUTHENTICATED.has(known) ? known : "OPERATOR_REQUIRED";
  }
  if (access === Access.WORKER || access === Access.LAUNCH) {
    const known = expectedOutcome(Access.AUTHENTICATED, caller);
    const may = access === Access.LAUNCH && caller === "a launch token";
    return UNAUTHENTICATED.has(known) || may ? known : DENIED;
  }
  switch (caller) {
    case "a monitoring token":
    case "a token with other access":
    case "a launch token":
      return { ...ANY_TOKEN, [Access.DEVELOPER]: DENIED, [Access.ADMIN]: DENIED }[access];
    case "an organization token":
    case "a member's personal token":
      return { ...ANY_TOKEN, [Access.ADMIN]: NO_ADMIN }[access];
    case "an admin's personal token":
      return ANY_TOKEN[access];
    case "a token of another organization":
      return access === Access.SESSION ? "SIGN_IN_REQUIRED" : "ORGANIZATION_NOT_FOUND";
    case "an admin of another organization":
      return "ORGANIZATION_NOT_FOUND";
    case "an admin of another organization, not naming one":
    case "an admin":
      return "ok";
    case "a member":
      return access === Access.ADMIN ? NO_ADMIN : "ok";
    case "nobody":
      return "TOKEN_MISSING";
    default:
      return "TOKEN_INVALID";
  }
}

const DENIED: Outcome = "ACCESS_DENIED";
const NO_ADMIN: Outcome = "ADMIN_REQUIRED";

/** Those that have no place on a platform without hosted deployments, nobody gets. */
const ANY_TOKEN: Record<Access, Outcome> = {
  [Access.UNSPECIFIED]: "INTERNAL",
  [Access.PUBLIC]: "ok",
  [Access.AUTHENTICATED]: "ok",
  [Access.SESSION]: "SIGN_IN_REQUIRED",
  [Access.DEVELOPER]: "ok",
  [Access.ADMIN]: "ok",
  [Access.ENDPOINT]: "DEPLOYMENT_NOT_FOUND",
  [Access.MONITORING]: "ACCESS_DENIED",
  [Access.OPERATOR]: "OPERATOR_REQUIRED",
  [Access.WORKER]: "ACCESS_DENIED",
  [Access.LAUNCH]: "ACCESS_DENIED",
};
