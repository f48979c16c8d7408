/**
 * Password hashing with Argon2id (RFC 9106), behind a bounded priority queue.
 *
 * A hash takes 32 MiB and some 25 ms on one of the four threads of the
 * runtime's pool. So at most two run, some more wait, and beyond that the
 * server is busy: sign-ins can exhaust neither memory nor the pool. Strangers
 * can fill their queue, but not that of the platform's people: a person in a
 * known browser or at a known address goes first, and some places are reserved
 * for them.
 */
import { hash, verify } from "@node-rs/argon2";
import { problem } from "../errors.ts";

/** Above OWASP's minimum of 19 MiB, 2 passes, 1 lane. */
export const PASSWORD_COST = { memoryCost: 32 * 1_024, timeCost: 2, parallelism: 1 } as const;

/** Shortest and longest password that is accepted. */
export const PASSWORD_CHARACTERS = { min: 10, max: 1_000 } as const;

/** Passwords hashed at a time. */
const MAX_PASSWORD_HASHES = 2;
/** Passwords that may wait to be hashed before others are refused with SERVER_BUSY. */
const MAX_WAITING_PASSWORDS = 100;
/** Passwords that may wait before those of known people are refused too. */
const MAX_WAITING_KNOWN_PASSWORDS = 120;

/**
 * The hash of a discarded random text at the cost above. Sign-ins of unknown
 * people are checked against it.
 */
export const DUMMY_HASH =
  "$argon2id$v=19$m=32768,t=2,p=1$FrJeijo9ikYWDk1d8hvIVg$F6Hiuc9bEFVwHlYovu6059mQ3MPmkxdq1mYje++xgIQ";

/**
 * Throws REQUEST_INVALID for a password that is too short or too long. Only the
 * length is checked (NIST SP 800-63B, section 5.1.1.2, advises against rules of
 * composition).
 */
export function checkPassword(password: string, field = "password"): void {
  const length = [...password.slice(0, 2 * PASSWORD_CHARACTERS.max + 2)].length;
  if (length < PASSWORD_CHARACTERS.min || length > PASSWORD_CHARACTERS.max) {
    const description = `must have ${PASSWORD_CHARACTERS.min} to 1,000 characters`;
    throw problem("REQUEST_INVALID", `${field}: ${description}`, {
      violations: [{ field, description }],
    });
  }
}

/** The priority of a hash in the queue. */
interface Turn {
  /** Go ahead of those without it; for known people. Default: false. */
  readonly ahead?: boolean;
}

/** Hashes a password for storage. Errors: SERVER_BUSY when too many wait. */
export function hashPassword(password: string, { ahead = false }: Turn = {}): Promise<string> {
  return queued(() => hash(normalized(password), PASSWORD_COST), ahead);
}

/**
 * Verifies a password against a hash. Without a hash the result is false and
 * takes as long, so the time does not tell whether a person exists. Errors:
 * SERVER_BUSY when too many wait.
 */
export async function verifyPassword(
  passwordHash: string | undefined,
  password: string,
  { ahead = false }: Turn = {},
): Promise<boolean> {
  // No password is this long, so hashing it would be a waste.
  const text = password.length > 2 * PASSWORD_CHARACTERS.max ? "" : password;
  const isRight = await queued(() => verify(passwordHash ?? DUMMY_HASH, normalized(text)), ahead);
  return isRight && passwordHash !== undefined;
}

/** Unicode normalization: keyboards differ in how they compose accents. */
function normalized(password: string): string {
  return password.normalize("NFKC");
}

let underWay = 0;
const waiting: (() => void)[] = [];
const waitingAhead: (() => void)[] = [];

async function queued<Result>(work: () => Promise<Result>, ahead = false): Promise<Result> {
  if (underWay >= MAX_PASSWORD_HASHES) {
    const count = waiting.length + waitingAhead.length;
    if (count >= (ahead ? MAX_WAITING_KNOWN_PASSWORDS : MAX_WAITING_PASSWORDS)) {
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
    // The slot goes to the longest waiter, or becomes free.
    const next = waitingAhead.shift() ?? waiting.shift();
    if (next === undefined) {
      underWay -= 1;
    } else {
      next();
    }
  }
}
