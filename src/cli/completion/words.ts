/** Reads an unfinished command line: which command it names, and what its last word stands for. */
import type { Argument, Command, Option } from "commander";
import { COMMANDS, type CommandSummary, commandNamed, type LoadCommand } from "../commands.ts";

/** A word that could stand at the cursor, and what it is. */
export interface CompletedWord {
  readonly word: string;
  readonly about: string;
}

/** What the word at the cursor stands for: one of some words, or a value. */
export type WordPlace =
  | { readonly kind: "words"; readonly words: readonly CompletedWord[] }
  | {
      readonly kind: "value";
      /** What it is a value of. */
      readonly of: Option | Argument;
      /** The names of the commands from the first to that of the value. */
      readonly path: readonly string[];
      /** What stands before the value in the same word, such as `--deployment=`. */
      readonly prefix: string;
      readonly typed: string;
      readonly flags: Readonly<Record<string, string>>;
      /** The arguments before it. */
      readonly args: readonly string[];
    };

/** Finds the place of the last of the words after the program's name. */
export async function placeOf(words: readonly string[], load: LoadCommand): Promise<WordPlace> {
  const before = words.slice(0, -1);
  const typed = words.at(-1) ?? "";
  const name = commandNamed(before);
  if (name === undefined && before.some((word) => !word.startsWith("-") && word !== "help")) {
    return { kind: "words", words: [] };
  }
  if (name === undefined) {
    return { kind: "words", words: typed.startsWith("-") ? PROGRAM_OPTIONS : PROGRAM_COMMANDS };
  }
  const loaded = await load(name);
  const isHelp = before.find((word) => !word.startsWith("-")) === "help";
  return placeIn(loaded, before.slice(before.indexOf(name) + 1), { typed, isHelp });
}

const PROGRAM_OPTIONS: readonly CompletedWord[] = [
  { word: "--help", about: "what there is" },
  { word: "--version", about: "the version of this program" },
];

const PROGRAM_COMMANDS: readonly CompletedWord[] = COMMANDS.filter(
  (each: CommandSummary) => each.hidden !== true,
).map(({ name, summary }) => ({ word: name, about: summary }));

function placeIn(
  first: Command,
  before: readonly string[],
  { typed, isHelp }: { readonly typed: string; readonly isHelp: boolean },
): WordPlace {
  let command = first;
  const path = [first.name()];
  const flags: Record<string, string> = {};
  const args: string[] = [];
  let waiting: Option | undefined;
  let onlyArguments = false;
  for (const word of before) {
    if (waiting !== undefined) {
      flags[waiting.attributeName()] = word;
      waiting = undefined;
      continue;
    }
    if (word === "--" && !onlyArguments) {
      onlyArguments = true;
      continue;
    }
    if (word.startsWith("-") && !onlyArguments) {
      const [flag = "", ...rest] = word.split("=");
      const option = optionOf(command, flag);
      if (option !== undefined && rest.length > 0) {
        flags[option.attributeName()] = rest.join("=");
      }
      waiting =
        option !== undefined && takesValue(option) && rest.length === 0 ? option : undefined;
      continue;
    }
    const below = args.length === 0 ? command.commands.find((it) => it.name() === word) : undefined;
    if (below === undefined) {
      args.push(word);
    } else {
      command = below;
      path.push(word);
    }
  }
  const value = { kind: "value", path, flags, args } as const;
  if (waiting !== undefined) {
    return { ...value, of: waiting, prefix: "", typed };
  }
  if (typed.startsWith("-") && !onlyArguments) {
    const [flag = "", ...rest] = typed.split("=");
    const option = rest.length > 0 ? optionOf(command, flag) : undefined;
    return option === undefined
      ? { kind: "words", words: optionsOf(command) }
      : { ...value, of: option, prefix: `${flag}=`, typed: rest.join("=") };
  }
  if (command.commands.length > 0 && args.length === 0) {
    const words = command.commands.map((it) => ({ word: it.name(), about: aboutCommand(it) }));
    return { kind: "words", words };
  }
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  const argument = registeredArguments[args.length] ?? (last?.variadic === true ? last : undefined);
  return argument === undefined || isHelp
    ? { kind: "words", words: [] }
    : { ...value, of: argument, prefix: "", typed };
}

function optionOf({ options }: Command, flag: string): Option | undefined {
  return options.find(({ long, short }) => flag === long || flag === short);
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

function optionsOf({ options }: Command): CompletedWord[] {
  const own = options
    .filter(({ hidden }) => !hidden)
    .flatMap(({ long, description }) =>
      long === null || long === undefined ? [] : [{ word: long, about: oneLine(description) }],
    );
  return [...own, { word: "--help", about: "what there is" }];
}

function aboutCommand(command: Command): string {
  return oneLine(command.summary() || command.description());
}

/** The first sentence, in one line. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").split(". ", 1)[0] ?? "";
}
