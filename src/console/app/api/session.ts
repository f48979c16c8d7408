/** The signed-in person of this browser and their organizations. */
import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { OrganizationJson } from "../../../../gen/tessera/v1/organization_pb.js";
import { auth } from "./clients.ts";

export const me = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => auth.getCurrentPrincipal({}, { signal }),
  staleTime: 60_000,
});

// Pure, so that the page of a deployment, which has no routes, is built without the router.
const organizationRoute = /* @__PURE__ */ getRouteApi("/signed-in/o/$organization");

/** The name of the organization in the path. */
export function useOrganization(): string {
  return organizationRoute.useParams().organization;
}

/** The person, their role in the organization in the path, and whether they are an operator. */
export function usePerson() {
  const { data: person } = useSuspenseQuery(me);
  const name = useOrganization();
  const organization = person.organizations?.find((one) => one.name === name);
  return {
    person,
    organization,
    isAdmin: organization?.role === "ROLE_ADMIN",
    isOperator: person.operator ?? false,
  };
}

/** Ends the session of this browser. The next page begins anew: nothing that was read stays in memory. */
export async function signOut(): Promise<void> {
  // Whatever it answers, the next page asks who is there.
  await auth.signOut({}).catch(() => undefined);
  location.assign("/sign-in");
}

export const titleOf = ({ displayName, name = "" }: OrganizationJson): string =>
  displayName || name;

const LAST_ORGANIZATION = "tessera.organization";

/** The organization that was looked at last, else the first one. */
export function preferredOrganization(all: readonly OrganizationJson[]): string | undefined {
  const last = localStorage.getItem(LAST_ORGANIZATION);
  return all.find(({ name }) => name === last)?.name ?? all[0]?.name;
}

export function rememberOrganization(name: string): void {
  localStorage.setItem(LAST_ORGANIZATION, name);
}
