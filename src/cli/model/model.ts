/** `tessera model`: weights by name, in versions. */
import type { Command } from "commander";
import { ListModelsResponseSchema, ModelSchema } from "../../client/index.ts";
import { type CloudActions, callCommand, group } from "../command.ts";
import { LIST_OPTIONS, type ListFlags, showPages } from "../lists.ts";
import { parseVersion, pullCommand, pushCommand } from "./files.ts";
import { importCommand } from "./import.ts";
import { modelTable, versionTable } from "./view.ts";

export const modelCommand = group(
  "model",
  "Push, import, see and delete models: weights by name, in versions.",
  [pushCommand, importCommand, listCommand, getCommand, pullCommand, deleteCommand],
);

function listCommand(actions: CloudActions): Command {
  return callCommand<ListFlags>("list", actions, {
    description: "List the models, by name, with their newest versions.",
    options: LIST_OPTIONS,
    examples: ["tessera model list", "tessera model list --json"],
    run: async (call, flags) => {
      const { organization, client } = call;
      await showPages(call, flags, {
        ...{ schema: ListModelsResponseSchema, field: "models" },
        text: ({ models }) => modelTable(models),
        read: (page) => client.models.listModels({ organization, ...page }),
      });
    },
  });
}

function getCommand(actions: CloudActions): Command {
  return callCommand("get", actions, {
    description: "Show the versions of a model, and who uses them.",
    arguments: [["<model>", "the model's name"]],
    examples: ["tessera model get qwen3-0.6b"],
    run: async (call, _flags, [model = ""]) => {
      const { organization } = call;
      const found = await call.client.models.getModel({ organization, model });
      call.show(ModelSchema, found, ({ versions }) => versionTable(versions));
      for (const { version, warnings } of found.versions) {
        for (const warning of warnings) {
          call.done(`warning: ${model}@${version}: ${warning}`);
        }
      }
    },
  });
}

function deleteCommand(actions: CloudActions): Command {
  return callCommand("delete", actions, {
    description: "Delete a version of a model, or all of it, unless a deployment has it.",
    arguments: [["<model>", "the model's name, with @ and a version (default: all versions)"]],
    asks: true,
    examples: ["tessera model delete reader@2", "tessera model delete reader --yes"],
    run: async (call, _flags, [named = ""]) => {
      const { organization } = call;
      const { model, version } = parseVersion(named);
      const what = version === 0 ? `model ${model} with all its versions` : `${model}@${version}`;
      await call.insist(`Delete ${what}?`);
      await call.client.models.deleteModel({ organization, model, version });
      call.done(`Deleted ${what}`);
    },
  });
}
