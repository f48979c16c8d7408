/** `tessera admin cells`: the databases with the platform's tasks. */
import { Command } from "commander";
import type { ExaminedCell } from "../../app/adapters.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { Flags } from "../../config/settings.ts";
import { examplesText, jsonOption, outputOption } from "../command.ts";
import { ExitCode } from "../failure.ts";
import type { OutputFormat } from "../output.ts";
import { addSettings } from "../settings.ts";
import { table } from "../table.ts";
import { Terminal } from "../terminal.ts";
import type { AdminActions } from "./command.ts";

export function cellsCommand({ tables, env, exit, streams }: AdminActions): Command {
  const command = new Command("cells").description(
    "List home and the cells with the platform's tasks, and how each is. Fails where one is not up.",
  );
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
      const lacking = cells.filter(({ state }) => state !== "up" && state !== "new");
      for (const { name, detail } of lacking) {
        new Terminal(streams).say(`${name}: ${detail}`);
      }
      if (lacking.length > 0) {
        exit(ExitCode.failed);
      }
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
