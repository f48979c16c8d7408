/** What the scripts share of reading their arguments. */
import { type ParseArgsConfig, parseArgs } from "node:util";

/** A script cannot be run with these arguments; the message says why, in one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What a command ends with that it could not understand. */
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
    // What follows the first sentence is about positional arguments that look like options.
    throw new UsageError(message.split(". ")[0]);
  }
}
