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
  return (
    adminOf(actions, "nodes", "List the nodes that live, with what each has to do.")
      // What follows the name of a command below belongs to that.
      .enablePositionalOptions()
      .addCommand(drainCommand(actions, "drain"))
      .addCommand(drainCommand(actions, "resume"))
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
      })
  );
}

function drainCommand(actions: AdminActions, verb: "drain" | "resume"): Command {
  const isDrained = verb === "drain";
  return adminOf(
    actions,
    verb,
    isDrained
      ? "Have the nodes of a machine run no user code, also after their restart; calls under way end as they would."
      : "Take the nodes of a drained machine back.",
  )
    .argument("<machine>", "the name of the machine, with which the ids of its nodes begin")
    .addHelpText("after", examplesText([`tessera admin nodes ${verb} node-1`]))
    .action(async (machine: string, flags: Flags) => {
      await using administration = await open(actions, flags);
      await administration.setDrained(machine, isDrained);
      new Terminal(actions.streams).say(
        isDrained ? `${machine} takes no new work` : `${machine} takes work again`,
      );
    });
}

function toJson({ nodeId, url = "", machine, startedAtMs, facts, isDrained }: ListedNode): object {
  return {
    node_id: nodeId,
    url,
    machine,
    drained: isDrained,
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
      labels: facts.labels ?? {},
      ...(facts.load !== undefined && {
        load: {
          processors: facts.load.processors,
          busy_processors: facts.load.busyProcessors,
          memory_bytes: facts.load.memoryBytes,
          used_memory_bytes: facts.load.usedMemoryBytes,
        },
      }),
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

function toRow({ nodeId, startedAtMs, facts, isDrained }: ListedNode): string[] {
  const started = new Date(startedAtMs).toISOString().slice(0, 16).replace("T", " ");
  return facts === undefined
    ? [nodeId, "", "", "", "", "", started, isDrained ? "drained" : ""]
    : [
        nodeId,
        facts.version,
        facts.sandbox,
        `${facts.workers} of ${facts.maxWorkers}`,
        `${inUnits(facts.memoryBytes)} of ${inUnits(facts.maxMemoryBytes)}`,
        inUnits(facts.freeDiskBytes),
        started,
        facts.draining ? "stopping" : isDrained ? drainText(facts.workers) : "running",
      ];
}

const drainText = (workers: number): string => (workers > 0 ? "draining" : "drained");
