import { createHash, timingSafeEqual } from "node:crypto";
import { problem } from "../errors.ts";
import type { Authenticate } from "./principal.ts";

const BEARER = /^Bearer +([^\s]+) *$/i;

/** Nobody is asked for a token. */
export const allowEveryone: Authenticate = () => ({ kind: "anonymous" });

/**
 * One token that every caller has to bring, as `Authorization: Bearer …`.
 * Digests are compared, so that the time taken tells nothing of the token,
 * not even its length.
 */
export function requireToken(token: string): Authenticate {
  const expected = digest(token);
  return ({ authorization }) => {
    const given = BEARER.exec(authorization ?? "")?.[1];
    if (given === undefined || !timingSafeEqual(digest(given), expected)) {
      throw problem(
        "TOKEN_INVALID",
        "this server asks for a token: send the header Authorization: Bearer <token> with a valid one",
      );
    }
    return { kind: "shared" };
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
