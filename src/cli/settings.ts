/** Derives command-line options from a table of settings. */
import { type Command, Option } from "commander";
import type { Settings } from "../config/config.ts";

/** Adds an option for every setting with a flag, and one for the settings file. */
export function addSettings(
  command: Command,
  settings: Settings,
  defaultFile = "tessera.json, if it is there",
): Command {
  for (const { flag, variable, summary, shownDefault, repeatable } of Object.values(settings)) {
    if (flag !== undefined) {
      const otherwise = shownDefault === "" ? "none" : shownDefault;
      const option = new Option(flag, `${summary} (default: ${otherwise}) [${variable}]`);
      command.addOption(repeatable ? option.argParser(joined) : option);
    }
  }
  return command
    .addOption(
      new Option("--config <file>", `file of settings (default: ${defaultFile}) [TESSERA_CONFIG]`),
    )
    .addHelpText("after", notes(settings));
}

function joined(text: string, earlier: string | undefined): string {
  return earlier === undefined ? text : `${earlier},${text}`;
}

function notes(settings: Settings): string {
  const hidden = Object.values(settings).filter(({ flag }) => flag === undefined);
  const longest = Math.max(...hidden.map(({ variable }) => variable.length));
  const lines = hidden.map(
    ({ variable, summary, shownDefault }) =>
      `  ${variable.padEnd(longest)}  ${summary}\n  ${" ".repeat(longest)}  (default: ${shownDefault})`,
  );
  return `
A flag comes before the variable in brackets, and that before the file, which is
JSON such as {"port": 8080}: docs/configuration.md has the keys and the reasons.

Only in the environment or the file, some because others can see a command line:
${lines.join("\n")}`;
}
