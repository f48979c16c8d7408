/** All deployments of an organization, page by page. */
import type { DeploymentRecord, Organizations } from "../storage/accounts/organizations.ts";

/** Deployments that are read at once. */
const MAX_DEPLOYMENTS_PER_READ = 1_000;

export type DeploymentLists = Pick<Organizations, "listDeployments">;

/** All deployments of an organization, sorted by name. */
export async function deploymentsOf(
  accounts: DeploymentLists,
  organizationId: string,
): Promise<readonly DeploymentRecord[]> {
  const found: DeploymentRecord[] = [];
  let after: string | undefined;
  do {
    const page = await accounts.listDeployments({
      organizationId,
      limit: MAX_DEPLOYMENTS_PER_READ,
      ...(after !== undefined && { after }),
    });
    found.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return found;
}
