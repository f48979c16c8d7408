/** Checks of a login's authorization request, which a program puts into the address of the consent page. */
import { createHash } from "node:crypto";
import type { AuthorizeLoginRequest } from "../../../gen/tessera/v1/login_pb.js";
import { refuse, violationsOf } from "../violations.ts";

/** A SHA-256 in base64url, without padding (RFC 7636, section 4.2). */
export const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** A code verifier (RFC 7636, section 4.1). */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** Name of the machine that a program logs in from. */
const MAX_HOST_NAME_CHARACTERS = 100;

/** Throws REQUEST_INVALID for a redirect that is not to the loopback address, and for other challenges than S256. */
export function checkAuthorization(req: AuthorizeLoginRequest): void {
  const { redirectUri, codeChallenge, codeChallengeMethod, state, hostName } = req;
  refuse(
    violationsOf({
      redirect_uri: isLoopback(redirectUri)
        ? undefined
        : "must be http://127.0.0.1:<port>/… or http://[::1]:<port>/…, without a fragment",
      code_challenge: CHALLENGE.test(codeChallenge)
        ? undefined
        : "must be the SHA-256 of the verifier, in base64url without padding",
      code_challenge_method: codeChallengeMethod === "S256" ? undefined : "must be S256",
      state: /^[!-~]+$/.test(state) ? undefined : "must be ASCII without spaces",
      host_name: faultOfHostName(hostName),
    }),
  );
}

/** The challenge of a verifier; for an invalid verifier the empty text, which matches no challenge. */
export function challengeOf(verifier: string): string {
  return VERIFIER.test(verifier) ? createHash("sha256").update(verifier).digest("base64url") : "";
}

/** Checks a host name, which becomes part of a token's name and which people read before they consent. */
export function faultOfHostName(hostName: string): string | undefined {
  return [...hostName].length <= MAX_HOST_NAME_CHARACTERS && !/[\p{C}\p{Zl}\p{Zp}]/u.test(hostName)
    ? undefined
    : `must be at most ${MAX_HOST_NAME_CHARACTERS} characters, none of them invisible`;
}

/** RFC 8252, section 7.3: a literal address, because a name could be made to resolve to another one. */
function isLoopback(uri: string): boolean {
  if (!/^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d{1,5}(?:[/?]|$)/.test(uri) || !URL.canParse(uri)) {
    return false;
  }
  const { username, password } = new URL(uri);
  return !uri.includes("#") && username === "" && password === "";
}
