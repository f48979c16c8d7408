/** `tessera init`: makes a project of a small service, in TypeScript or Python. */
import { basename, relative, resolve } from "node:path";
import { Command, Option } from "commander";
import { type CloudActions, examplesText } from "../command.ts";
import { shellWord } from "../curl.ts";
import { plain } from "../plain.ts";
import { Terminal } from "../terminal.ts";
import { LANGUAGES, type Language, nameFor, writeProject } from "./project.ts";

interface InitFlags {
  readonly language?: Language;
}

const LABELS: Readonly<Record<Language, string>> = { typescript: "TypeScript", python: "Python" };

/** What to type then, in the project's folder. */
const STEPS: Readonly<Record<Language, readonly string[]>> = {
  typescript: ["npm install", "npm test", "npm run types"],
  python: [
    "python3 -m venv .venv",
    ".venv/bin/pip install -e '.[test]'",
    ".venv/bin/pytest",
    ".venv/bin/mypy .",
  ],
};

export function initCommand({ streams, program }: CloudActions): Command {
  return new Command("init")
    .description("Make a project of a small service, with a test, settings to deploy it, and CI.")
    .argument("[folder]", "an empty or new folder", ".")
    .addOption(
      new Option(
        "--language <language>",
        "of the service (default: asks at a terminal, typescript otherwise)",
      ).choices(LANGUAGES),
    )
    .addHelpText(
      "after",
      examplesText(["tessera init my-service", "tessera init --language python"]),
    )
    .action(async (folder: string, flags: InitFlags) => {
      const terminal = new Terminal(streams);
      const language = flags.language ?? (await ask(terminal));
      const path = resolve(folder);
      const name = nameFor(basename(path));
      writeProject({ folder: path, language, name });
      terminal.answer(nextSteps({ path, language, name }, program));
    });
}

async function ask(terminal: Terminal): Promise<Language> {
  if (!terminal.interactive) {
    return "typescript";
  }
  const choices = LANGUAGES.map((value) => ({ name: LABELS[value], value }));
  return await terminal.choose("Language of the service", choices);
}

interface Made {
  readonly path: string;
  readonly language: Language;
  readonly name: string;
}

function nextSteps({ path, language, name }: Made, program: string): string {
  const folder = relative("", path);
  // A project in TypeScript brings the command with it.
  const tessera = language === "typescript" ? "npx tessera" : program;
  const lines = [...(folder === "" ? [] : [`cd ${plain(shellWord(folder))}`]), ...STEPS[language]];
  const file = language === "typescript" ? "service.ts" : "service.py";
  return [
    `Made ${name}, a service in ${LABELS[language]}. To test it and serve it on http://localhost:3000:`,
    "",
    ...lines.map((line) => `  ${line}`),
    `  ${tessera} serve ${file} --watch`,
    "",
    `Then, with a platform (${tessera} start runs one, and says how to set it up):`,
    "",
    `  ${tessera} cloud login --endpoint http://localhost:3000`,
    `  ${tessera} deploy .`,
  ].join("\n");
}
