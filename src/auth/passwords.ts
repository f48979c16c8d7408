/**
 * Passwords of people, as Argon2id (RFC 9106) keeps them.
 *
 * A hash costs 32 MiB and some 25 ms on a thread of the runtime's pool, of
 * which there are four for everything. So at most two are under way, some
 * more wait, and beyond that the server is busy: sign-ins can exhaust neither
 * memory nor the pool. Strangers may fill the queue, but not for the people of
 * the platform: who comes from where they have signed in before is let in
 * ahead of them, and has places of their own.
 */
import { hash, verify } from "@node-rs/argon2";
import { problem } from "../errors.ts";

/** Above the figures that OWASP asks for at least: 19 MiB, 2 passes, 1 lane. */
export const PASSWORD_COST = { memoryCost: 32 * 1_024, timeCost: 2, parallelism: 1 } as const;

export const PASSWORD_LENGTH = { min: 10, max: 1_000 } as const;

const MAX_UNDER_WAY = 2;
const MAX_WAITING = 100;
const MAX_WAITING_AHEAD = 120;

/** Of a random text nobody knows, at the cost above: what a person who does not exist is checked against. */
export const DUMMY_HASH =
  "$argon2id$v=19$m=32768,t=2,p=1$FrJeijo9ikYWDk1d8hvIVg$F6Hiuc9bEFVwHlYovu6059mQ3MPmkxdq1mYje++xgIQ";

/**
 * Throws REQUEST_INVALID for a password that is too short or too long.
 * Length is all that is asked (NIST SP 800-63B, section 5.1.1.2, advises
 * against rules of composition).
 */
export function checkPassword(password: string, field = "password"): void {
  const length = [...password.slice(0, 2 * PASSWORD_LENGTH.max + 2)].length;
  if (length < PASSWORD_LENGTH.min || length > PASSWORD_LENGTH.max) {
    const description = `must have ${PASSWORD_LENGTH.min} to 1,000 characters`;
    throw problem("REQUEST_INVALID", `${field}: ${description}`, {
      violations: [{ field, description }],
    });
  }
}

/** Whose turn it is to be hashed. */
export interface Turn {
  /** Not behind those without: for people who are known. Default: false. */
  readonly ahead?: boolean;
}

/** Hashes a password for keeping. Errors: SERVER_BUSY when too many wait. */
export function hashPassword(password: string, { ahead = false }: Turn = {}): Promise<string> {
  return queued(() => hash(normalized(password), PASSWORD_COST), ahead);
}

/**
 * Whether a password is the one that was hashed. Without a hash the answer is
 * no, and takes as long: the time does not tell whether a person exists.
 * Errors: SERVER_BUSY when too many wait.
 */
export async function verifyPassword(
  passwordHash: string | undefined,
  password: string,
  { ahead = false }: Turn = {},
): Promise<boolean> {
  // Nothing this long was ever hashed, and hashing it now would only cost.
  const text = password.length > 2 * PASSWORD_LENGTH.max ? "" : password;
  const isRight = await queued(() => verify(passwordHash ?? DUMMY_HASH, normalized(text)), ahead);
  return isRight && passwordHash !== undefined;
}

/** One password is typed in many ways: keyboards differ in how they put accents together. */
function normalized(password: string): string {
  return password.normalize("NFKC");
}

let underWay = 0;
const waiting: (() => void)[] = [];
const waitingAhead: (() => void)[] = [];

async function queued<Result>(work: () => Promise<Result>, ahead = false): Promise<Result> {
  if (underWay >= MAX_UNDER_WAY) {
    const count = waiting.length + waitingAhead.length;
    if (count >= (ahead ? MAX_WAITING_AHEAD : MAX_WAITING)) {
      throw problem("SERVER_BUSY", "too many people sign in at once: try again", {
        retryAfterMs: 2_000,
      });
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    (ahead ? waitingAhead : waiting).push(resolve);
    await promise;
  } else {
    underWay += 1;
  }
  try {
    return await work();
  } finally {
    // The place goes to who waits longest, or becomes free.
    const next = waitingAhead.shift() ?? waiting.shift();
    if (next === undefined) {
      underWay -= 1;
    } else {
      next();
    }
  }
}
