/** `tessera complete`: answers the scripts of `tessera completion`. It fails silently. */
import { Command } from "commander";
import type { CloudActions } from "../command.ts";
import type { LoadCommand } from "../commands.ts";
import { plain } from "../plain.ts";
import { type CompletedWord, placeOf } from "./words.ts";

/** Words of a command line that is completed; a longer one is no command line. */
const MAX_COMPLETED_WORDS = 1_000;

interface CompleteActions extends CloudActions {
  readonly load: LoadCommand;
}

export function completeCommand(actions: CompleteActions): Command {
  return new Command("complete")
    .description("Answer a shell's question for completions: the words up to the cursor.")
    .argument("[words...]", "the words after the program's name; the last one is unfinished")
    .action(async (words: string[]) => {
      const lines = await answer(words, actions).catch(() => []);
      actions.streams.stdout.write(lines.map((line) => `${line}\n`).join(""));
    });
}

async function answer(words: readonly string[], actions: CompleteActions): Promise<string[]> {
  if (words.length > MAX_COMPLETED_WORDS) {
    return [];
  }
  const place = await placeOf(words, actions.load);
  if (place.kind === "words") {
    return linesOf(place.words, words.at(-1) ?? "");
  }
  // Loaded on demand: completing commands and flags asks nobody.
  const { valuesOf } = await import("./values.ts");
  const { candidates, filesAfter } = await valuesOf(place, actions);
  const { prefix, typed } = place;
  const whole = candidates.map(({ word, about }) => ({ word: prefix + word, about }));
  const files = filesAfter === undefined ? [] : [`:files ${prefix}${filesAfter}`.trimEnd()];
  return [...linesOf(whole, prefix + typed), ...files];
}

/** The candidates that begin with what is typed, without names whose line breaks would make further lines. */
function linesOf(candidates: readonly CompletedWord[], typed: string): string[] {
  return candidates
    .filter(({ word }) => word.startsWith(typed) && !/[\p{Cc}\s]/u.test(word))
    .map(({ word, about }) => {
      const shown = plain(about).trim();
      return shown === "" ? word : `${word}\t${shown}`;
    });
}
