/** Authentication of `tessera serve`: one shared token, or none. */
import { createHash, timingSafeEqual } from "node:crypto";
import { problem } from "../errors.ts";
import { bearerToken } from "./bearer.ts";
import type { Authenticate } from "./principal.ts";

/** Lets every caller in without a token. */
export const allowEveryone: Authenticate = () => ({ kind: "anonymous" });

/**
 * Requires one token of every caller, as `Authorization: Bearer …`. Digests are
 * compared in constant time, so the time tells nothing about the token, not
 * even its length.
 */
export function requireToken(token: string): Authenticate {
  const expected = digest(token);
  return ({ authorization }) => {
    const given = bearerToken(authorization);
    if (given === undefined || !timingSafeEqual(digest(given), expected)) {
      throw problem(
        "TOKEN_INVALID",
        "the token is not the one that this server asks for: send the header Authorization: Bearer <token> with that",
      );
    }
    return { kind: "shared" };
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
