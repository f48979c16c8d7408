/** Conversion of token requests to the domain's terms; `checkTokenFields` validates the result. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Token, TokenAccess } from "../../../gen/tessera/v1/token_pb.js";
import type { Principal } from "../../auth/principal.ts";
import { isForDeployments } from "../../auth/token-rules.ts";
import type { TokenFields, TokenRecord, TokenUpdate } from "../../storage/accounts/tokens.ts";
import { invalidField } from "../violations.ts";
import { fromAccessWords } from "./messages.ts";

/** The fields that requests to create and to update have in common. */
interface FieldsMessage {
  readonly name: string;
  readonly description: string;
  readonly access: readonly TokenAccess[];
  readonly allDeployments: boolean;
  readonly deployments: readonly string[];
  readonly expiresAt?: Timestamp;
  readonly notBefore?: Timestamp;
  readonly allowedNetworks: readonly string[];
}

/**
 * The fields of a new token. One created with another token expires with that,
 * unless the request says otherwise. Errors: REQUEST_INVALID if a person gives
 * no expiry.
 */
export function newTokenFields(message: FieldsMessage, maker: Principal): TokenFields {
  const { expiresAt } = message;
  return {
    name: message.name.trim(),
    description: message.description,
    access: fromAccessWords(message.access),
    allDeployments: message.allDeployments,
    deployments: message.deployments,
    expiresAtMs:
      expiresAt === undefined && maker.kind === "token" ? maker.expiresAtMs : expiry(expiresAt),
    notBeforeMs: message.notBefore && timestampMs(message.notBefore),
    allowedNetworks: message.allowedNetworks.map((network) => network.trim()),
  };
}

/** The fields that an update may change. */
export const CHANGEABLE = [
  "name",
  "description",
  "access",
  "all_deployments",
  "deployments",
  "expires_at",
  "not_before",
  "allowed_networks",
] as const;

type Changeable = (typeof CHANGEABLE)[number];

/**
 * The fields of a token that an update changes, with what follows from them: a
 * list of deployments clears `all_deployments`, `all_deployments` clears the
 * list, and the loss of protected endpoint access clears both.
 */
export function changedTokenFields(message: Token, changed: ReadonlySet<Changeable>): TokenUpdate {
  const access = fromAccessWords(message.access);
  const losesDeployments = changed.has("access") && !isForDeployments(access);
  const { allDeployments, deployments } = message;
  const isAll = changed.has("all_deployments") && allDeployments;
  const isList = changed.has("deployments") && deployments.length > 0;
  return {
    ...(changed.has("name") && { name: message.name.trim() }),
    ...(changed.has("description") && { description: message.description }),
    ...(changed.has("access") && { access }),
    ...((losesDeployments || isAll) && { deployments: [] }),
    ...((losesDeployments || isList) && { allDeployments: false }),
    ...(changed.has("all_deployments") && { allDeployments }),
    ...(changed.has("deployments") && { deployments }),
    ...(changed.has("expires_at") && { expiresAtMs: expiry(message.expiresAt) }),
    ...(changed.has("not_before") && {
      notBeforeMs: message.notBefore === undefined ? null : timestampMs(message.notBefore),
    }),
    ...(changed.has("allowed_networks") && {
      allowedNetworks: message.allowedNetworks.map((network) => network.trim()),
    }),
  };
}

/** The changeable fields of a stored token. */
export function fieldsOf(token: TokenRecord): TokenFields {
  const { name, description, access, allDeployments, deployments } = token;
  const { expiresAtMs, notBeforeMs, allowedNetworks } = token;
  return {
    name,
    description,
    access,
    allDeployments,
    deployments: deployments.map((deployment) => deployment.name),
    expiresAtMs,
    notBeforeMs,
    allowedNetworks,
  };
}

function expiry(expiresAt: Timestamp | undefined): number {
  if (expiresAt === undefined) {
    throw invalidField("expires_at", "is required: a token does not live forever");
  }
  return timestampMs(expiresAt);
}
