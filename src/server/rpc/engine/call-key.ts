/** The key of a call: whose it is among the callers that share its endpoint, or its server. */
import type { HandlerContext } from "@connectrpc/connect";
import { problem, type Quota, tellQuota } from "../../../errors.ts";
import type { EndpointManifest } from "../../../protocol/manifest.ts";
import { callerOf } from "./caller.ts";

/** The header that names it, over every protocol. */
const KEY_HEADER = "tessera-key";
/** Characters of a key, which stands in the row of its task and in indexes. */
const MAX_KEY_CHARACTERS = 128;

/** A call, as far as its key needs it. */
interface Called extends Pick<HandlerContext, "values"> {
  readonly requestHeader: Pick<Headers, "get">;
}

/**
 * The key of a call. Throws REQUEST_INVALID for one that cannot be one, and where the header
 * `Tessera-Key` is another.
 *
 * Where neither is given, an endpoint that goes by keys has the caller's token, or the person.
 *
 * @param given in the request; empty: not there
 */
export function keyOf(
  ctx: Called,
  given: string,
  { byKey }: Pick<EndpointManifest, "byKey">,
): string | undefined {
  const { requestHeader } = ctx;
  const header = requestHeader.get(KEY_HEADER) ?? "";
  if (given !== "" && header !== "" && given !== header) {
    throw invalid("contradicts the header Tessera-Key: give it in one of the two places");
  }
  const key = given || header;
  if (key === "") {
    return byKey && callerKey(ctx);
  }
  const fault = faultOfKey(key);
  if (fault !== undefined) {
    throw invalid(fault);
  }
  return key;
}

/** The key of a call of an api, or of a request to a server; undefined where it has no limits by key. */
export function keyOfCall(
  ctx: Called,
  endpoint: Pick<EndpointManifest, "byKey">,
): string | undefined {
  return endpoint.byKey && keyOf(ctx, "", endpoint);
}

/** Tells in the answer to a call of an api what its key has left, where the endpoint has a rate by key. */
export function tellsQuota({ responseHeader }: HandlerContext, { byKey }: EndpointManifest) {
  return byKey?.rate && { onQuota: (left: Quota): void => tellQuota(responseHeader, left) };
}

function callerKey(ctx: Pick<HandlerContext, "values">): string | undefined {
  const { principal } = callerOf(ctx);
  switch (principal.kind) {
    case "token":
      return principal.tokenId;
    case "session":
      return principal.userId;
    default:
      return undefined;
  }
}

function faultOfKey(key: string): string | undefined {
  if ([...key.slice(0, 2 * MAX_KEY_CHARACTERS + 1)].length > MAX_KEY_CHARACTERS) {
    return `must have at most ${MAX_KEY_CHARACTERS} characters: send an id, or a digest of what is longer`;
  }
  return /[\p{Cc}\p{Cs}]/u.test(key) ? "must be text without control characters" : undefined;
}

function invalid(description: string): Error {
  return problem("REQUEST_INVALID", `key ${description}`, {
    violations: [{ field: "key", description }],
  });
}
