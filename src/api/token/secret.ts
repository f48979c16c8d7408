import { type KeyRing, sealingContext } from "../../auth/keys.ts";
import { createTokenValue, parseTokenValue } from "../../auth/token-format.ts";
import { tokenLetter } from "../../auth/token-rules.ts";
import type { NewSecret, TokenRecord } from "../../storage/accounts/tokens.ts";

/** A new value for a token, and what is stored of it: digest and hint, and for organization tokens the sealed value. */
export function newSecret(
  keys: Pick<KeyRing, "digest" | "seal">,
  token: Pick<TokenRecord, "organizationId" | "tokenId" | "kind" | "access">,
): { readonly value: string; readonly secret: NewSecret } {
  const { organizationId, tokenId, kind, access } = token;
  const value = createTokenValue(tokenLetter(kind, access));
  const { digest, keyId: digestKeyId } = keys.digest(value);
  const hint = parseTokenValue(value)?.hint ?? "";
  const sealed =
    kind === "organization"
      ? { sealed: keys.seal(value, sealingContext(organizationId, tokenId)) }
      : {};
  return { value, secret: { digest, digestKeyId, hint, ...sealed } };
}
