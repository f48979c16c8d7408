import { Role } from "../client/index.ts";

/** The roles, as they are typed. */
export const ROLES: Readonly<Record<string, Role>> = { member: Role.MEMBER, admin: Role.ADMIN };

/** As people read it; empty for those who have none. */
export function roleText(role: Role): string {
  return role === Role.UNSPECIFIED ? "" : (Role[role] ?? "").toLowerCase();
}
