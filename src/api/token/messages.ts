/** Conversion between tokens as records and as messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { TokenAccess, TokenKind, type TokenSchema } from "../../../gen/tessera/v1/token_pb.js";
import type { TokenGrants, TokenRecord } from "../../storage/accounts/tokens.ts";
import { timestampFromMs } from "../../time/messages.ts";

const TOKEN_KIND = {
  personal: TokenKind.PERSONAL,
  organization: TokenKind.ORGANIZATION,
} as const;

/**
 * A token. `publicUrl`: the platform's, where what is read with it is. Default: none, for tokens of
 * people, which cannot have monitoring access.
 */
export function toTokenMessage(
  token: TokenRecord,
  publicUrl?: string,
): MessageInitShape<typeof TokenSchema> {
  const { notBeforeMs, lastUsedAtMs, previousValidUntilMs } = token;
  return {
    tokenId: token.tokenId,
    organization: token.organization,
    kind: TOKEN_KIND[token.kind],
    name: token.name,
    description: token.description,
    access: toAccessWords(token.access),
    allDeployments: token.allDeployments,
    deployments: token.deployments.map(({ name }) => name),
    expiresAt: timestampFromMs(token.expiresAtMs),
    ...(notBeforeMs !== undefined && { notBefore: timestampFromMs(notBeforeMs) }),
    allowedNetworks: [...token.allowedNetworks],
    createdAt: timestampFromMs(token.createdAtMs),
    createdBy: token.createdBy,
    updatedAt: timestampFromMs(token.updatedAtMs),
    ...(lastUsedAtMs !== undefined && { lastUsedAt: timestampFromMs(lastUsedAtMs) }),
    lastUsedAddress: token.lastUsedAddress ?? "",
    version: token.version,
    hint: token.hint,
    ...(previousValidUntilMs !== undefined && {
      previousValidUntil: timestampFromMs(previousValidUntilMs),
    }),
    revealable: token.revealable,
    monitoringUrl: token.access.monitoring && publicUrl ? `${publicUrl}/federate` : "",
  };
}

export function toAccessWords(access: TokenGrants): TokenAccess[] {
  return [
    ...(access.developerOperations ? [TokenAccess.DEVELOPER_OPERATIONS] : []),
    ...(access.protectedEndpoint ? [TokenAccess.PROTECTED_ENDPOINT] : []),
    ...(access.monitoring ? [TokenAccess.MONITORING] : []),
    ...(access.worker ? [TokenAccess.WORKER] : []),
    ...(access.launch ? [TokenAccess.LAUNCH] : []),
  ];
}

export function fromAccessWords(words: readonly TokenAccess[]): TokenGrants {
  return {
    developerOperations: words.includes(TokenAccess.DEVELOPER_OPERATIONS),
    protectedEndpoint: words.includes(TokenAccess.PROTECTED_ENDPOINT),
    monitoring: words.includes(TokenAccess.MONITORING),
    worker: words.includes(TokenAccess.WORKER),
    launch: words.includes(TokenAccess.LAUNCH),
  };
}
