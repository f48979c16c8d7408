/** Secrets that a program was given, and whether its log and its errors show one. */
import { TOKEN_PATTERN } from "../../../src/auth/token-format.ts";

/** Settings whose whole value is secret. */
const SECRET_SETTING = /(?:^|_)(?:TOKEN|KEYS|PASSWORD|PASSPHRASE|SECRET)(?:_|$)/;

/** Name and password in an address, as far as `@`. */
const CREDENTIALS = /:\/\/([^/?#@\s:]+:[^/?#@\s]+@)/;

/** A shorter one may be a word of a message. */
const SHORTEST = 8;

/** What a program must not repeat: secrets in its environment, its arguments and its input. */
export function secretsOf({
  args,
  env = {},
  input = "",
}: {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}): ReadonlySet<string> {
  const given = [...args, ...Object.values(env), input];
  return new Set(
    [
      ...given.flatMap((text) => CREDENTIALS.exec(text)?.[1] ?? []),
      ...given.flatMap((text) => TOKEN_PATTERN.exec(text)?.[0] ?? []),
      ...Object.entries(env).flatMap(([name, value]) => (SECRET_SETTING.test(name) ? value : [])),
    ].filter((secret) => secret.length >= SHORTEST),
  );
}

/** Throws if a text, such as a log, shows one of the secrets or any token. */
export function refuseLeaks(text: string, secrets: ReadonlySet<string>): void {
  const shown = [...secrets, TOKEN_PATTERN.exec(text)?.[0]].find(
    (secret) => secret !== undefined && text.includes(secret),
  );
  if (shown !== undefined) {
    const line = text.split("\n").find((each) => each.includes(shown)) ?? "";
    throw new Error(`a secret is in the log or in an error: ${line}`);
  }
}
