/** `tessera client`: generates typed clients from a deployment's schema. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import {
  clientSource,
  fetchSchema,
  pythonClientSource,
  type ServiceSchema,
} from "../client/index.ts";
import { type CloudActions, group, option } from "./command.ts";
import { CliError, usageError } from "./failure.ts";
import { isInstalled } from "./npx.ts";
import { type TargetFlags, targetCommand } from "./target.ts";

export const clientCommand = group("client", "Make clients of deployments.", [generateCommand]);

const LANGUAGES = { typescript: clientSource, python: pythonClientSource } satisfies Record<
  string,
  (schema: ServiceSchema, clientModule?: string) => string
>;

/** The package of the client alone; a module imports it where it is installed. */
const CLIENT_PACKAGE = "tessera-platform-client";

interface GenerateFlags extends TargetFlags {
  readonly language?: keyof typeof LANGUAGES;
}

function generateCommand(actions: CloudActions): Command {
  const command = targetCommand<GenerateFlags>("generate", actions, {
    description: "Write a typed client of a deployment, in TypeScript or Python.",
    arguments: [["[url]", "the same as --url"]],
    options: [
      option(
        "--language <language>",
        "what it is written in (default: python for --output *.py, else typescript)",
      ).choices(Object.keys(LANGUAGES)),
      option(
        "--output <path>",
        "write it there (default: to standard output); Python: a file *.py, or a folder that becomes a package",
      ),
    ],
    formats: false,
    examples: [
      "tessera client generate http://localhost:3000 --output summarizer.ts",
      "tessera client generate --deployment summarizer --output summarizer.py",
    ],
    run: async ({ connection, terminal, signal }, flags) => {
      const { output } = flags;
      const language = flags.language ?? (output?.endsWith(".py") ? "python" : "typescript");
      const folder = output === undefined ? process.cwd() : dirname(resolve(output));
      const clientModule = isInstalled(CLIENT_PACKAGE, folder) ? CLIENT_PACKAGE : undefined;
      const schema = await fetchSchema(connection, { signal });
      const source = LANGUAGES[language](schema, clientModule);
      if (output === undefined) {
        terminal.streams.stdout.write(source);
        return;
      }
      const isPackage = language === "python" && !output.endsWith(".py");
      await (isPackage ? writePackage(output, source) : writeFile(output, source)).catch(
        (err: NodeJS.ErrnoException) => {
          throw new CliError(`${output} cannot be written: ${err.code}`, { cause: err });
        },
      );
      terminal.say(`Wrote ${output}`);
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

/** Writes a package of Python with the mark that its types are meant for others (PEP 561). */
async function writePackage(folder: string, source: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "__init__.py"), source);
  await writeFile(join(folder, "py.typed"), "");
}
