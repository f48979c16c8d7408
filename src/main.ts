/** The process edge: arguments in, exit code out. */
import { Command, CommanderError } from "commander";
import { serveService } from "./app.ts";
import { serveCommand } from "./cli/serve.ts";
import { readServeConfig } from "./config.ts";
import { exampleOf } from "./deployments/openapi/example.ts";
import { version } from "./version.ts";

const EXAMPLES = `
Examples:
  $ tessera serve service.ts    serve on http://localhost:3000
  $ tessera serve --help        every option`;

/** Runs the program; resolves with its exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = new Command("tessera")
    .description(
      "Serves functions over HTTP, Connect and gRPC, and runs the slow ones as durable tasks.",
    )
    .version(version)
    .showHelpAfterError("(tessera --help shows what there is)")
    .addHelpText("after", EXAMPLES)
    .exitOverride();
  program.addCommand(
    serveCommand({
      readConfig: readServeConfig,
      serve: serveService,
      exampleOf,
      exit: (code) => {
        exitCode = code;
      },
    }),
  );
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (err) {
    // Commander has written its own message.
    return err instanceof CommanderError ? err.exitCode : fail(err);
  }
  return exitCode;
}

function fail(err: unknown): number {
  process.stderr.write(`tessera: ${err instanceof Error ? err.message : String(err)}\n`);
  return 1;
}
