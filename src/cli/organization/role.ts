/** Roles of members on the command line. */
import { Role } from "../../client/index.ts";

/** Roles by the word that users type. */
export const ROLES: Readonly<Record<string, Role>> = { member: Role.MEMBER, admin: Role.ADMIN };

/** The word for a role; empty when unspecified. */
export function roleText(role: Role): string {
  return role === Role.UNSPECIFIED ? "" : (Role[role] ?? "").toLowerCase();
}
