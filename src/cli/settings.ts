/** Derives command-line options from a table of settings. */
import { type Command, Option } from "commander";
import type { Settings } from "../config/settings.ts";

/**
 * Adds an option for every setting with a flag, and one for the file of settings. `file` is the
 * one that is read where none is named; undefined where there is no such file.
 */
export function addSettings(
  command: Command,
  settings: Settings,
  { file }: { readonly file: string | undefined } = { file: "tessera.json, if it is there" },
): Command {
  for (const { flag, variable, summary, shownDefault, repeatable } of Object.values(settings)) {
    if (flag !== undefined) {
      // A flag without a text is off where it is not given.
      const otherwise = flag.endsWith(">") ? ` (default: ${shownDefault || "none"})` : "";
      const named = variable === undefined ? "" : ` [${variable}]`;
      const option = new Option(flag, `${summary}${otherwise}${named}`);
      command.addOption(repeatable ? option.argParser(collected) : option);
    }
  }
  if (file !== undefined) {
    const help = `file of settings (default: ${file}) [TESSERA_CONFIG]`;
    command.addOption(new Option("--config <file>", help));
  }
  return command.addHelpText("after", notes(settings, file !== undefined));
}

function collected(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

function notes(settings: Settings, hasFile: boolean): string {
  const hidden = Object.values(settings).flatMap(({ flag, variable, ...told }) =>
    flag === undefined && variable !== undefined ? [{ variable, ...told }] : [],
  );
  const longest = Math.max(...hidden.map(({ variable }) => variable.length));
  const lines = hidden.map(
    ({ variable, summary, shownDefault }) =>
      `  ${variable.padEnd(longest)}  ${summary}\n  ${" ".repeat(longest)}  (default: ${shownDefault || "none"})`,
  );
  const order = hasFile
    ? `A flag comes before the variable in brackets, and that before the file, which is
JSON such as {"port": 8080}: docs/configuration.md has the keys and the reasons.`
    : "A flag comes before the variable in brackets: docs/configuration.md has the reasons.";
  return `
${order}

Only in the environment${hasFile ? " or the file, some because others can see a command line" : ""}:
${lines.join("\n")}`;
}
