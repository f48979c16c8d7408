/** `tessera admin cells`: the databases with the platform's tasks. */
import { Command } from "commander";
import type { ExaminedCell } from "../../app/adapters.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { Flags } from "../../config/settings.ts";
import { examplesText, jsonOption, outputOption, YES } from "../command.ts";
import { ExitCode } from "../failure.ts";
import type { OutputFormat } from "../output.ts";
import { addSettings } from "../settings.ts";
import { table } from "../table.ts";
import { Terminal } from "../terminal.ts";
import type { AdminActions } from "./command.ts";

/** States of cells with which nothing is wrong. */
const WELL: ReadonlySet<ExaminedCell["state"]> = new Set(["up", "new", "closed", "empty"]);

export function cellsCommand(actions: AdminActions): Command {
  const { tables, env, exit, streams } = actions;
  const command = new Command("cells")
    .description(
      "List home and the cells with the platform's tasks, and how each is. Fails where one does not answer, or is another than it was named as.",
    )
    // What follows the name of a command below belongs to that.
    .enablePositionalOptions()
    .addCommand(closeCommand(actions));
  return addSettings(command, tables.CELLS_SETTINGS)
    .addOption(outputOption())
    .addOption(jsonOption())
    .addHelpText("after", examplesText(["tessera admin cells", "tessera admin cells --json"]))
    .action(async ({ output, ...flags }: Flags & { readonly output: OutputFormat }) => {
      const { readCellsConfig } = await import("../../config/start.ts");
      const secrets = readCellsConfig(flags, env);
      const { listCells } = await import("../../app/operate/cells.ts");
      const cells = await listCells(secrets);
      new Terminal(streams).answer(
        output === "json"
          ? JSON.stringify(cells.map(toJson), null, 2)
          : table(
              ["CELL", "NUMBER", "STATE", "QUEUED", "RUNNING", "SIZE", "DATABASE"],
              cells.map(toRow),
              {
                empty: "No cells",
                drop: ["SIZE", "NUMBER"],
              },
            ),
      );
      for (const { name, detail } of cells.filter(
        ({ state }) => state !== "up" && state !== "new",
      )) {
        new Terminal(streams).say(`${name}: ${detail}`);
      }
      if (cells.some(({ state }) => !WELL.has(state))) {
        exit(ExitCode.failed);
      }
    });
}

function closeCommand({ tables, env, streams }: AdminActions): Command {
  const command = new Command("close").description(
    "Have a cell take no new tasks, for good, so that it can be left out once nothing is left in it.",
  );
  return addSettings(command, tables.CELLS_SETTINGS)
    .argument("<name>", "the name of the cell")
    .addOption(YES)
    .addHelpText("after", examplesText(["tessera admin cells close b"]))
    .action(async (name: string, { yes, ...flags }: Flags & { readonly yes?: boolean }) => {
      const { readCellsConfig } = await import("../../config/start.ts");
      const secrets = readCellsConfig(flags, env);
      const terminal = new Terminal(streams);
      await terminal.insist(`Close cell ${name}? It cannot be opened again.`, yes);
      const { closeForGood } = await import("../../app/operate/cells.ts");
      await closeForGood(secrets, name);
      terminal.say(`${name} takes no new tasks; tessera admin cells says when it is empty`);
    });
}

function toRow({
  name,
  number,
  state,
  queued,
  running,
  sizeBytes,
  database,
}: ExaminedCell): string[] {
  return [
    name,
    String(number ?? ""),
    state,
    String(queued ?? ""),
    String(running ?? ""),
    sizeBytes === undefined ? "" : inUnits(sizeBytes),
    database,
  ];
}

function toJson({
  name,
  number,
  state,
  detail,
  queued,
  running,
  sizeBytes,
  database,
}: ExaminedCell): object {
  return {
    name,
    number: number ?? null,
    state,
    detail,
    database,
    queued: queued ?? null,
    running: running ?? null,
    size_bytes: sizeBytes ?? null,
  };
}
