/** Reads of tokens, and how pages name what a token is. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import type { TokenAccessJson, TokenJson } from "../../../../gen/tessera/v1/token_pb.js";
import { tokens } from "./clients.ts";
import { PAGES } from "./pages.ts";
import type { Access } from "./token-access.ts";

/** Tokens that are read at once; more come on demand. */
const MAX_TOKENS_PER_PAGE = 100;

export const tokensOf = (organization: string) =>
  infiniteQueryOptions({
    queryKey: ["tokens", organization],
    queryFn: ({ pageParam, signal }) =>
      tokens.listTokens(
        { organization, pageSize: MAX_TOKENS_PER_PAGE, pageToken: pageParam },
        { signal },
      ),
    ...PAGES,
  });

export const isOrganizations = ({ kind }: TokenJson): boolean => kind === "TOKEN_KIND_ORGANIZATION";

/** Whether an access stands alone in a token. */
export const isAlone = (access: Access): boolean =>
  access === "TOKEN_ACCESS_MONITORING" ||
  access === "TOKEN_ACCESS_WORKER" ||
  access === "TOKEN_ACCESS_LAUNCH";

/** Whether a token with this access names deployments. */
export const isForDeployments = (access: readonly TokenAccessJson[]): boolean =>
  access.includes("TOKEN_ACCESS_PROTECTED_ENDPOINT") ||
  access.includes("TOKEN_ACCESS_WORKER") ||
  access.includes("TOKEN_ACCESS_LAUNCH");

/** The deployments that it is for; empty for tokens that name none. */
export function callable({ access = [], allDeployments, deployments = [] }: TokenJson): string {
  if (!isForDeployments(access)) {
    return "";
  }
  return allDeployments ? "all deployments" : deployments.join(", ");
}
