/** OrganizationService: organizations and their audit events. */
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type ListAuditEventsRequest,
  OrganizationSchema,
  type OrganizationService,
} from "../../../gen/tessera/v1/organization_pb.js";
import { faultOfDisplayName, faultOfOrganizationName } from "../../auth/names.ts";
import {
  checkCreator,
  type OrganizationCreators,
  operatorRequired,
} from "../../auth/organization-creators.ts";
import type { Ceilings } from "../../deployments/ceilings.ts";
import { type Problem, problem } from "../../errors.ts";
import {
  actorOf,
  type Caller,
  callerOf,
  deed,
  memberIn,
  memberOf,
  organizationNotFound,
} from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { ArtifactFiles } from "../../storage/hosting/files.ts";
import { idBoundary, isTaskId } from "../../tasks/id.ts";
import { changedFields } from "../mask.ts";
import { PageTokens } from "../page.ts";
import { bounded } from "../task/list.ts";
import { missing, refuse, violationsOf } from "../violations.ts";
import { type MemberOptions, memberHandlers } from "./member.ts";
import { toAuditMessage, toOrganizationMessage } from "./messages.ts";

/** Organizations of one person, above which they cannot create another, so that nobody claims all names. */
const MAX_MEMBERSHIPS = 100;

/** Deployments that the storage use of an organization names: those that take most. */
const MAX_STORAGE_DEPLOYMENTS = 100;

/** The fields that an update may change. */
export const CHANGEABLE = ["display_name", "reveal_enabled"] as const;

interface OrganizationServiceOptions extends MemberOptions {
  readonly accounts: MemberOptions["accounts"] &
    Pick<
      Organizations,
      | "createOrganization"
      | "findOrganization"
      | "updateOrganization"
      | "askForMonitoring"
      | "listAuditEvents"
    >;
  readonly hosting: Pick<ArtifactFiles, "readStorageUse">;
  readonly ceilings: Ceilings;
  /** Who may create organizations; undefined: as `checkCreator` says. */
  readonly organizationCreators: OrganizationCreators | undefined;
}

/** OrganizationService over the accounts. */
export function organizationService(
  options: OrganizationServiceOptions,
): Partial<ServiceImpl<typeof OrganizationService>> {
  const { accounts, newId } = options;

  const read = async (caller: Caller, name: string) => {
    const { organizationId, organization, role } = memberIn(caller, name);
    const found = await accounts.findOrganization({ organizationId });
    if (found === undefined) {
      throw organizationNotFound(organization);
    }
    return toOrganizationMessage(found, role);
  };

  return {
    ...memberHandlers(options),

    async createOrganization({ name, displayName }, ctx) {
      const { principal, address } = callerOf(ctx);
      refuse(
        violationsOf({
          name: faultOfOrganizationName(name),
          display_name: faultOfDisplayName(displayName),
        }),
      );
      if (principal.kind !== "session") {
        throw new Error("the method's access does not ask for a session");
      }
      const { userId, memberships } = principal;
      const limit = checkCreator(options.organizationCreators, principal);
      if (memberships.length >= MAX_MEMBERSHIPS) {
        throw problem(
          "LIMIT_REACHED",
          `you belong to ${memberships.length} organizations, which is enough: leave some first`,
        );
      }
      const by = actorOf({ principal, address });
      const organizationId = newId();
      const made = { organizationId, name, displayName, userId };
      const created = await accounts.createOrganization({
        ...deed(by, options),
        ...made,
        ...limit,
      });
      switch (created.outcome) {
        case "created":
          return toOrganizationMessage(created.organization, "admin");
        case "name_taken":
          throw exists(name);
        case "limit":
          throw operatorRequired();
      }
    },

    getOrganization({ organization }, ctx) {
      return read(callerOf(ctx), organization);
    },

    async listOrganizations(_req, ctx) {
      const caller = callerOf(ctx);
      const { principal } = caller;
      const names =
        principal.kind === "session"
          ? principal.memberships.map(({ organization }) => organization).sort()
          : [""];
      // An organization's own host shows no others.
      const { hostOrganization } = caller;
      const shown = names.filter(
        (name) => hostOrganization === undefined || name === "" || name === hostOrganization,
      );
      return { organizations: await Promise.all(shown.map((name) => read(caller, name))) };
    },

    async updateOrganization({ organization: message = missing(), updateMask: mask }, ctx) {
      const { organizationId, organization, role, by } = memberOf(ctx);
      const changed = changedFields(OrganizationSchema, { message, mask }, CHANGEABLE);
      if (changed.has("display_name")) {
        const fault = faultOfDisplayName(message.displayName);
        refuse(violationsOf({ "organization.display_name": fault }));
      }
      const updated = await accounts.updateOrganization({
        ...deed(by, options),
        organizationId,
        ...(changed.has("display_name") && { displayName: message.displayName }),
        ...(changed.has("reveal_enabled") && { revealEnabled: message.revealEnabled }),
      });
      if (updated === undefined) {
        throw organizationNotFound(organization);
      }
      return toOrganizationMessage(updated, role);
    },

    async getStorageUse(_req, ctx) {
      const { organizationId } = memberOf(ctx);
      const limit = MAX_STORAGE_DEPLOYMENTS;
      const use = await options.hosting.readStorageUse({ organizationId, limit });
      return {
        usedBytes: BigInt(use.usedBytes),
        limitBytes: BigInt(options.ceilings.storageBytes),
        unusedBytes: BigInt(use.unusedBytes),
        modelBytes: BigInt(use.modelBytes),
        deployments: use.deployments.map(({ name, revisions, bytes }) => ({
          deployment: name,
          revisions,
          bytes: BigInt(bytes),
        })),
      };
    },

    async askForMonitoring(_req, ctx) {
      const { organizationId, organization, role, by } = memberOf(ctx);
      const asking = await accounts.askForMonitoring({ ...deed(by, options), organizationId });
      if (asking === undefined) {
        throw organizationNotFound(organization);
      }
      return toOrganizationMessage(asking, role);
    },

    async listAuditEvents(req, ctx) {
      const { organizationId } = memberOf(ctx);
      const filter = auditFilterOf(req);
      const end = req.timeBefore && idBoundary(bounded(req.timeBefore));
      const tokens = new PageTokens({
        method: "ListAuditEvents",
        filter: [organizationId, ...Object.values(filter), end],
        isEnd: isTaskId,
      });
      const query = tokens.query(req);
      const page = await accounts.listAuditEvents({
        ...(end !== undefined && { after: end }),
        ...query,
        ...filter,
        organizationId,
      });
      return {
        auditEvents: page.items.map(toAuditMessage),
        nextPageToken: tokens.after(page.next),
      };
    },
  };
}

function auditFilterOf({ actor, action, subject, timeFrom }: ListAuditEventsRequest) {
  return {
    actor: actor || undefined,
    action: action || undefined,
    subject: subject || undefined,
    // Ids begin with the time of the event.
    from: timeFrom && idBoundary(bounded(timeFrom)),
  };
}

function exists(name: string): Problem {
  return problem("ORGANIZATION_EXISTS", `the name ${name} is taken: choose another`);
}
