/** Flags for the fields of tokens. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { TokenAccess, TokenKind } from "../../client/index.ts";
import { option, repeatable } from "../command.ts";
import { usageError } from "../failure.ts";
import { parseMoment } from "../times.ts";

/** The common flags of `token create` and `token update`. */
export interface TokenFlags {
  readonly description?: string;
  readonly developerOperations?: boolean;
  readonly protectedEndpoint?: boolean;
  readonly monitoring?: boolean;
  readonly worker?: boolean;
  readonly access?: readonly string[];
  readonly deployment?: readonly string[];
  readonly allDeployments?: boolean;
  readonly expires?: string;
  readonly notBefore?: string;
  readonly allowNetwork?: readonly string[];
}

export const TOKEN_OPTIONS = [
  option("--description <text>", "what it is for"),
  option("--developer-operations", "access: log in and manage resources"),
  option("--protected-endpoint", "access: call deployments that ask for a token"),
  option("--monitoring", "access: read metrics; stands alone, on organization tokens"),
  option("--worker", "access: join workers on other machines to deployments; stands alone"),
  repeatable(
    "--access <kind>",
    "the same by its name; launch, which has no flag: start machines for deployments",
  ),
  repeatable(
    "--deployment <name>",
    "a deployment that protected endpoint, worker or launch access is for",
  ),
  option("--all-deployments", "that access is for all of them, also future ones"),
  repeatable("--allow-network <cidr>", "usable from this network only, such as 10.0.0.0/8"),
];

/** Kinds of tokens by the word that users type. */
export const KINDS: Readonly<Record<string, TokenKind>> = {
  personal: TokenKind.PERSONAL,
  organization: TokenKind.ORGANIZATION,
};

const ACCESS_WORDS: ReadonlyMap<TokenAccess, string> = new Map([
  [TokenAccess.DEVELOPER_OPERATIONS, "developer operations"],
  [TokenAccess.PROTECTED_ENDPOINT, "protected endpoint"],
  [TokenAccess.MONITORING, "monitoring"],
  [TokenAccess.WORKER, "worker"],
  [TokenAccess.LAUNCH, "launch"],
]);

/** As people read it. */
export function accessText(access: readonly TokenAccess[]): string {
  return access.map((one) => ACCESS_WORDS.get(one) ?? TokenAccess[one]).join(", ");
}

/** As people read it. */
export function kindText(kind: TokenKind): string {
  return TokenKind[kind]?.toLowerCase() ?? "";
}

/** The access that the flags request. */
export function accessOf(flags: TokenFlags): TokenAccess[] {
  const { developerOperations, protectedEndpoint, monitoring, worker } = flags;
  const named = (flags.access ?? []).map(accessNamed);
  return [
    ...new Set([
      ...(developerOperations === true ? [TokenAccess.DEVELOPER_OPERATIONS] : []),
      ...(protectedEndpoint === true ? [TokenAccess.PROTECTED_ENDPOINT] : []),
      ...(monitoring === true ? [TokenAccess.MONITORING] : []),
      ...(worker === true ? [TokenAccess.WORKER] : []),
      ...named,
    ]),
  ];
}

function accessNamed(word: string): TokenAccess {
  const spaced = word.replaceAll(/[-_]/g, " ");
  for (const [access, name] of ACCESS_WORDS) {
    if (name === spaced) {
      return access;
    }
  }
  const names = [...ACCESS_WORDS.values()].map((name) => name.replaceAll(" ", "-"));
  throw usageError(`--access ${word}: there is ${names.join(", ")}`);
}

interface TokenChange {
  readonly token: {
    name?: string;
    description?: string;
    access?: TokenAccess[];
    allDeployments?: boolean;
    deployments?: string[];
    expiresAt?: Timestamp;
    notBefore?: Timestamp;
    allowedNetworks?: string[];
  };
  /** Field mask paths of the changed fields. */
  readonly paths: string[];
}

/** Builds an update from flags; a list is replaced as a whole. */
export function tokenChange(
  flags: TokenFlags & { readonly name?: string },
  nowMs: number,
): TokenChange {
  const token: TokenChange["token"] = {};
  const paths: string[] = [];
  if (flags.name !== undefined) {
    token.name = flags.name;
    paths.push("name");
  }
  if (flags.description !== undefined) {
    token.description = flags.description;
    paths.push("description");
  }
  const access = accessOf(flags);
  if (access.length > 0) {
    token.access = access;
    paths.push("access");
  }
  if (flags.deployment !== undefined || flags.allDeployments === true) {
    token.deployments = [...(flags.deployment ?? [])];
    token.allDeployments = flags.allDeployments ?? false;
    paths.push("deployments", "all_deployments");
  }
  if (flags.expires !== undefined) {
    token.expiresAt = parseMoment("--expires", flags.expires, nowMs);
    paths.push("expires_at");
  }
  if (flags.notBefore !== undefined) {
    // An absent field in the message is cleared.
    if (flags.notBefore !== "now") {
      token.notBefore = parseMoment("--not-before", flags.notBefore, nowMs);
    }
    paths.push("not_before");
  }
  if (flags.allowNetwork !== undefined) {
    const anywhere = flags.allowNetwork.includes("any");
    token.allowedNetworks = anywhere ? [] : [...flags.allowNetwork];
    paths.push("allowed_networks");
  }
  return { token, paths };
}
