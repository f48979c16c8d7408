/** What a token may do, in words. */
import type { TokenAccessJson } from "../../../../gen/tessera/v1/token_pb.js";

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

/** What these allow, such as `Deploy and manage`. */
export const deedsOf = (access: readonly string[] = []): string =>
  access.map((one) => ACCESS[one as Access]?.does ?? one).join(", ");
