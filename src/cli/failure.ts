/**
 * Failures of commands and their exit codes. This file imports nothing, because every command
 * starts with it; how errors of clients are reported is in `describe.ts`.
 */
/** Exit codes; scripts may rely on them. */
export const ExitCode = {
  done: 0,
  failed: 1,
  /** The command line is invalid, or a value of it is, as the server says; nothing was done. */
  usage: 2,
  /** Not logged in, or the token is not valid. */
  unauthenticated: 3,
  notFound: 4,
  /** Ctrl-C, by the convention of shells. */
  interrupted: 130,
} as const;

/** For the help of commands. */
export const EXIT_CODES = `
Exit codes:
  0 done, 1 failed, 2 wrong command line or a value that is refused,
  3 not logged in or token not valid, 4 not found, 130 interrupted`;

interface CliErrorOptions {
  /** Default: 1. */
  readonly exitCode?: number;
  /** What to do about it. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/** A failure that the command itself detected. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: number;
  readonly hint: string | undefined;

  constructor(message: string, options: CliErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.exitCode = options.exitCode ?? ExitCode.failed;
    this.hint = options.hint;
  }
}

/** Creates the error for an invalid command line. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError(message, {
    exitCode: ExitCode.usage,
    ...(hint !== undefined && { hint }),
  });
}

/** A failure for display; nothing is shown without a message. */
export interface Failure {
  readonly message: string | undefined;
  readonly hint: string | undefined;
  readonly exitCode: number;
}

/** Redacts tokens in a text that may quote the command line. */
export function withoutTokens(text: string): string {
  return text.replace(/\b(tsr[pom]_)[0-9A-Za-z]+/g, "$1…");
}
