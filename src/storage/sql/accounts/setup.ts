/** The first setup of a platform. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { People } from "../../accounts/people.ts";
import { type Operation, query } from "../operation.ts";
import { record } from "./audit.ts";
import { announce } from "./changes.ts";
import { lockPlatform } from "./locks.ts";
import { addMember, addOrganization } from "./organizations.ts";
import { insertSession } from "./sessions.ts";
import { insertUser } from "./users.ts";

export function* needsSetup(): Operation<boolean> {
  const rows = yield* query("SELECT organization_id FROM organizations LIMIT 1");
  return rows.length === 0;
}

export function* putSetupCode({
  digest,
  nowMs,
}: Parameters<Accounts["putSetupCode"]>[0]): Operation<boolean> {
  yield* lockPlatform("setup");
  yield* query("DELETE FROM setup_codes");
  if (!(yield* needsSetup())) {
    return false;
  }
  yield* query("INSERT INTO setup_codes (digest, created_at_ms) VALUES (?, ?)", digest, nowMs);
  return true;
}

export function* setUp(
  parameters: Parameters<Accounts["setUp"]>[0],
): Operation<Awaited<ReturnType<People["setUp"]>>> {
  const { setupDigest, organizationId, organization, userId, email, session, nowMs } = parameters;
  yield* lockPlatform("setup");
  if (!(yield* needsSetup())) {
    return { outcome: "already_done" };
  }
  if (setupDigest !== undefined) {
    const rows = yield* query("SELECT digest FROM setup_codes WHERE digest = ?", setupDigest);
    if (rows.length === 0) {
      return { outcome: "code_invalid" };
    }
  }
  yield* query("DELETE FROM setup_codes");
  // The setup link is printed on the machine: its holder runs the platform.
  yield* insertUser({ ...parameters, emailVerified: true, operator: true });
  const first = { organizationId, name: organization, displayName: "", nowMs };
  yield* addOrganization({ ...first, invitationLinksEnabled: true });
  yield* addMember({ organizationId, userId, email, role: "admin", nowMs });
  if (session) {
    yield* insertSession({ userId, session, nowMs, by: parameters.by });
  }
  yield* record(parameters, organizationId, {
    action: "organization.create",
    subjectId: organizationId,
    subject: organization,
    details: { admin: email, setup: "true" },
  });
  yield* announce(nowMs, { kind: "organization", id: organizationId });
  return { outcome: "done" };
}
