/** Reads of tokens, and how pages name what a token is. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import type { TokenAccessJson, TokenJson } from "../../../../gen/tessera/v1/token_pb.js";
import { tokens } from "./clients.ts";

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
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });

/** What each access allows, as the form says it. */
export const ACCESS = {
  TOKEN_ACCESS_DEVELOPER_OPERATIONS: {
    name: "Developer operations",
    hint: "Log in on the command line, and manage deployments, tokens and members.",
  },
  TOKEN_ACCESS_PROTECTED_ENDPOINT: {
    name: "Protected endpoint",
    hint: "Call deployments that require a token.",
  },
  TOKEN_ACCESS_MONITORING: {
    name: "Monitoring",
    hint: "Let your own Prometheus read the organization's metrics.",
  },
} as const satisfies Partial<Record<TokenAccessJson, { name: string; hint: string }>>;

export type Access = keyof typeof ACCESS;

export const accessNames = ({ access = [] }: TokenJson): string =>
  access.map((one) => ACCESS[one as Access]?.name ?? one).join(", ");

export const isOrganizations = ({ kind }: TokenJson): boolean => kind === "TOKEN_KIND_ORGANIZATION";

/** The deployments that it may call; empty for tokens that call none. */
export function callable({ access = [], allDeployments, deployments = [] }: TokenJson): string {
  if (!access.includes("TOKEN_ACCESS_PROTECTED_ENDPOINT")) {
    return "";
  }
  return allDeployments ? "all deployments" : deployments.join(", ");
}
