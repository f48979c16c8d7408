/** Parses the arguments of scripts. */
import { type ParseArgsConfig, parseArgs } from "node:util";

/** A script cannot be run with these arguments; the message says why, in one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Exit code for invalid arguments. */
export const USAGE_EXIT_CODE = 2;

/** `parseArgs` of Node. Throws a `UsageError`. */
export function readArguments<Config extends ParseArgsConfig>(
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config);
  } catch (err) {
    const { code = "", message } = err as NodeJS.ErrnoException;
    if (!code.startsWith("ERR_PARSE_ARGS_")) {
      throw err;
    }
    // Only the first sentence applies; the rest is about positional arguments that look like options.
    throw new UsageError(message.split(". ")[0]);
  }
}
