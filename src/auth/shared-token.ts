/** Authentication of `tessera serve`: one shared token, or none. */
import { createHash, timingSafeEqual } from "node:crypto";
import { problem } from "../errors.ts";
import type { Authenticate } from "./principal.ts";

const BEARER = /^Bearer +([^\s]+) *$/i;

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
