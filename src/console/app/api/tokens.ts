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
    does: "Deploy and manage",
    hint: "Sign in on the command line, and manage deployments, tokens and members.",
  },
  TOKEN_ACCESS_PROTECTED_ENDPOINT: {
    name: "Protected endpoint",
    does: "Call protected deployments",
    hint: "Call deployments that require a token.",
  },
  TOKEN_ACCESS_MONITORING: {
    name: "Monitoring",
    does: "Read metrics",
    hint: "Let your own Prometheus read the organization's metrics.",
  },
  TOKEN_ACCESS_WORKER: {
    name: "Worker",
    does: "Join workers",
    hint: "Join workers on other machines. They get the code, the secrets and the arguments of their deployment.",
  },
  TOKEN_ACCESS_LAUNCH: {
    name: "Launch",
    does: "Start machines",
    hint: "Start machines for deployments: read how many are wanted, and let each join for hours.",
  },
} as const satisfies Partial<Record<TokenAccessJson, { name: string; does: string; hint: string }>>;

export type Access = keyof typeof ACCESS;

/** What it may do, such as `Deploy and manage`, in the words of verbs. */
export const deedsOf = ({ access = [] }: TokenJson): string =>
  access.map((one) => ACCESS[one as Access]?.does ?? one).join(", ");

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
