/** Who may create organizations: the one place that decides. */
import { type Problem, problem } from "../errors.ts";
import type { SessionPrincipal } from "./principal.ts";

/** What the operator may choose. */
export const ORGANIZATION_CREATORS = ["anyone", "admins", "operator"] as const;

export type OrganizationCreators = (typeof ORGANIZATION_CREATORS)[number];

/** Organizations from which on only the operator creates others, unless they have said who may. */
const MAX_UNMANAGED_ORGANIZATIONS = 2;

/**
 * Checks that a person may create an organization. Without a setting, admins
 * may, until the platform has two organizations: the returned limit is for the
 * transaction that creates it. Errors: ADMIN_REQUIRED, OPERATOR_REQUIRED.
 */
export function checkCreator(
  creators: OrganizationCreators | undefined,
  { memberships }: Pick<SessionPrincipal, "memberships">,
): { readonly limit?: number } {
  switch (creators) {
    case "anyone":
      return {};
    case "operator":
      throw operatorRequired();
    default:
      if (!memberships.some(({ role }) => role === "admin")) {
        throw problem(
          "ADMIN_REQUIRED",
          "only admins of an organization may create another: ask one, or the operator of the platform",
        );
      }
      return creators === "admins" ? {} : { limit: MAX_UNMANAGED_ORGANIZATIONS };
  }
}

/** The error for everyone but the operator. */
export function operatorRequired(): Problem {
  return problem(
    "OPERATOR_REQUIRED",
    "only the operator of the platform creates organizations: ask them to run tessera admin create-organization, or to start the platform with --organization-creators admins",
  );
}
