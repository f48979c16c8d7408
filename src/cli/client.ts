/** `tessera client`: generates typed clients from a deployment's schema. */
import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { clientSource, fetchSchema } from "../client/index.ts";
import { type CloudActions, group, option } from "./command.ts";
import { CliError, usageError } from "./failure.ts";
import { type TargetFlags, targetCommand } from "./target.ts";

export function clientCommand(actions: CloudActions): Command {
  return group("client", "Make clients of deployments.", [generateCommand(actions)]);
}

function generateCommand(actions: CloudActions): Command {
  const command = targetCommand<TargetFlags>("generate", actions, {
    description: "Write a typed TypeScript client of a deployment.",
    arguments: [["[url]", "the same as --url"]],
    options: [option("--output <file>", "write it there (default: to standard output)")],
    formats: false,
    examples: [
      "tessera client generate http://localhost:3000 --output summarizer.ts",
      "tessera client generate --deployment summarizer --output summarizer.ts",
    ],
    run: async ({ connection, terminal, signal }, flags) => {
      const source = clientSource(await fetchSchema(connection, { signal }));
      const file = flags.output;
      if (file === undefined) {
        terminal.streams.stdout.write(source);
        return;
      }
      await writeFile(file, source).catch((err: NodeJS.ErrnoException) => {
        throw new CliError(`${file} cannot be written: ${err.code}`, { cause: err });
      });
      terminal.say(`Wrote ${file}`);
    },
  });
  // The argument is the URL.
  command.hook("preAction", () => {
    const [url] = command.args;
    if (url !== undefined && command.getOptionValue("url") !== undefined) {
      throw usageError("the URL is given twice");
    }
    if (url !== undefined) {
      command.setOptionValue("url", url);
    }
  });
  return command;
}
