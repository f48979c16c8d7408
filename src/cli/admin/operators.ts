/** The commands of `tessera admin` about operators and nodes. */
import { Command } from "commander";
import type { ListedNode } from "../../app/operate/administration.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { Flags } from "../../config/settings.ts";
import { examplesText, jsonOption, outputOption } from "../command.ts";
import type { OutputFormat } from "../output.ts";
import { table } from "../table.ts";
import { Terminal } from "../terminal.ts";
import { type AdminActions, adminOf, open } from "./command.ts";

type ListFlags = Flags & { readonly output: OutputFormat };

export function operatorsCommand(actions: AdminActions): Command {
  return new Command("operators")
    .description("Say who sees the nodes, the organizations and the database in the console.")
    .addCommand(listCommand(actions))
    .addCommand(changeCommand(actions, "add"))
    .addCommand(changeCommand(actions, "remove"));
}

function listCommand(actions: AdminActions): Command {
  return adminOf(actions, "list", "List the operators.")
    .addOption(outputOption())
    .addOption(jsonOption())
    .addHelpText("after", examplesText(["tessera admin operators list"]))
    .action(async (flags: ListFlags) => {
      await using administration = await open(actions, flags);
      const listed = await administration.operators();
      const terminal = new Terminal(actions.streams);
      if (flags.output === "json") {
        const json = listed.map(({ email, displayName }) => ({ email, display_name: displayName }));
        terminal.answer(JSON.stringify(json, null, 2));
        return;
      }
      const rows = listed.map(({ email, displayName }) => [email, displayName]);
      terminal.answer(table(["E-MAIL ADDRESS", "NAME"], rows, { empty: "No operators" }));
    });
}

function changeCommand(actions: AdminActions, verb: "add" | "remove"): Command {
  const isAdded = verb === "add";
  return adminOf(
    actions,
    verb,
    isAdded ? "Make a person an operator." : "Make a person an operator no longer.",
  )
    .argument("<address>", "e-mail address of a person who has an account")
    .addHelpText("after", examplesText([`tessera admin operators ${verb} grace@example.com`]))
    .action(async (address: string, flags: Flags) => {
      await using administration = await open(actions, flags);
      const { email, emailVerified } = await administration.setOperator(address, isAdded);
      const terminal = new Terminal(actions.streams);
      terminal.say(`${email} is ${isAdded ? "an operator now" : "no operator any more"}`);
      if (isAdded && !emailVerified) {
        terminal.say(
          "The address is not proved: the account belongs to the person who opened its link.",
        );
      }
    });
}

export function nodesCommand(actions: AdminActions): Command {
  return adminOf(actions, "nodes", "List the nodes that live, with what each has to do.")
    .addOption(outputOption())
    .addOption(jsonOption())
    .addHelpText("after", examplesText(["tessera admin nodes --output json"]))
    .action(async (flags: ListFlags) => {
      await using administration = await open(actions, flags);
      const nodes = await administration.nodes();
      const terminal = new Terminal(actions.streams);
      if (flags.output === "json") {
        terminal.answer(JSON.stringify(nodes.map(toJson), null, 2));
        return;
      }
      const columns = [
        "NODE",
        "VERSION",
        "SANDBOX",
        "WORKERS",
        "MEMORY",
        "DISK FREE",
        "STARTED",
        "STATE",
      ];
      terminal.answer(
        table(columns, nodes.map(toRow), {
          empty: "No node is running",
          drop: ["DISK FREE", "STARTED", "SANDBOX"],
        }),
      );
    });
}

function toJson({ nodeId, url = "", startedAtMs, facts }: ListedNode): object {
  return {
    node_id: nodeId,
    url,
    started_at: new Date(startedAtMs).toISOString(),
    ...(facts !== undefined && {
      version: facts.version,
      sandbox: facts.sandbox,
      workers: facts.workers,
      max_workers: facts.maxWorkers,
      memory_bytes: facts.memoryBytes,
      max_memory_bytes: facts.maxMemoryBytes,
      waiting: facts.waiting,
      free_disk_bytes: facts.freeDiskBytes,
      disk_bytes: facts.diskBytes,
      draining: facts.draining ?? false,
      gpus: (facts.gpus ?? []).map((gpu) => ({
        index: gpu.index,
        ...(gpu.slice !== undefined && { slice: gpu.slice.index }),
        name: gpu.name,
        memory_bytes: gpu.memoryBytes,
        used_bytes: gpu.usedBytes,
        holders: gpu.holders,
        dealt: gpu.dealt,
        left_out: gpu.leftOut ?? "",
      })),
    }),
  };
}

function toRow({ nodeId, startedAtMs, facts }: ListedNode): string[] {
  const started = new Date(startedAtMs).toISOString().slice(0, 16).replace("T", " ");
  return facts === undefined
    ? [nodeId, "", "", "", "", "", started, ""]
    : [
        nodeId,
        facts.version,
        facts.sandbox,
        `${facts.workers} of ${facts.maxWorkers}`,
        `${inUnits(facts.memoryBytes)} of ${inUnits(facts.maxMemoryBytes)}`,
        inUnits(facts.freeDiskBytes),
        started,
        facts.draining ? "draining" : "running",
      ];
}
