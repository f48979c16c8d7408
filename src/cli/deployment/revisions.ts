/** `tessera deployment revisions` and `rollback`. */
import { type Command, InvalidArgumentError } from "commander";
import {
  ChangeKind,
  type CompareRevisionsResponse,
  CompareRevisionsResponseSchema,
  ListRevisionsResponseSchema,
} from "../../client/index.ts";
import { inUnits } from "../../collections/sizes.ts";
import { type CloudActions, callCommand, option } from "../command.ts";
import { usageError } from "../failure.ts";
import { NAME_OR_HERE, nameOrHere } from "../here.ts";
import { LIST_OPTIONS, type ListFlags, showPages } from "../lists.ts";
import { plain } from "../plain.ts";
import { finishRollout, NO_WAIT, type WaitFlags } from "./state.ts";
import { NAME, revisionTable } from "./view.ts";

export function revisionsCommand(actions: CloudActions): Command {
  return callCommand<ListFlags>("revisions", actions, {
    description: "List what was deployed, newest first.",
    arguments: [NAME_OR_HERE],
    options: LIST_OPTIONS,
    examples: ["tessera deployment revisions summarizer"],
    run: async (call, flags, [given]) => {
      const name = await nameOrHere(given);
      const { organization, client } = call;
      const of = { organization, deployment: name };
      const deployment = await client.deployments.getDeployment(of);
      await showPages(call, flags, {
        ...{ schema: ListRevisionsResponseSchema, field: "revisions" },
        text: ({ revisions }) => revisionTable(revisions, deployment),
        read: (page) => client.deployments.listRevisions({ ...of, ...page }),
      });
    },
  });
}

interface RollbackFlags extends WaitFlags {
  readonly to?: number;
}

export function rollbackCommand(actions: CloudActions): Command {
  return callCommand<RollbackFlags>("rollback", actions, {
    description:
      "Bring the code of an earlier revision back, as a new revision. Settings, variables and secrets stay.",
    arguments: [NAME],
    options: [
      option("--to <revision>", "which one (default: the one before)").argParser((text: string) => {
        if (!/^[1-9]\d{0,8}$/.test(text)) {
          throw new InvalidArgumentError("Give the number of a revision.");
        }
        return Number(text);
      }),
      NO_WAIT,
    ],
    examples: [
      "tessera deployment rollback summarizer",
      "tessera deployment rollback summarizer --to 3",
    ],
    run: async (call, { to: revision = 0, wait }, [name = ""]) => {
      const { organization } = call;
      const request = { organization, deployment: name, revision };
      const changed = await call.client.deployments.rollBackDeployment(request);
      call.done(
        `Revision ${changed.targetRevision} brings its code back; settings stay as they are`,
      );
      await finishRollout(call, changed, { wait });
    },
  });
}

export function compareCommand(actions: CloudActions): Command {
  return callCommand("compare", actions, {
    description: "Show what a revision changed in the code since another one.",
    arguments: [
      NAME,
      ["<revision>", "number of a revision"],
      ["[base]", "the one to compare with (default: the one before)"],
    ],
    examples: [
      "tessera deployment compare summarizer 4",
      "tessera deployment compare summarizer 4 1",
    ],
    run: async (call, _flags, [name = "", revision = "", base]) => {
      const found = await call.client.deployments.compareRevisions({
        organization: call.organization,
        deployment: name,
        revision: numberOf(revision),
        base: base === undefined ? 0 : numberOf(base),
      });
      call.show(CompareRevisionsResponseSchema, found, comparisonText);
    },
  });
}

function numberOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) {
    throw usageError(`${JSON.stringify(text)} is not the number of a revision, such as 3`);
  }
  return Number(text);
}

const MARKS: Readonly<Record<ChangeKind, string>> = {
  [ChangeKind.UNSPECIFIED]: "?",
  [ChangeKind.ADDED]: "+",
  [ChangeKind.REMOVED]: "-",
  [ChangeKind.CHANGED]: "~",
};

function comparisonText({ files, changedFiles, endpoints }: CompareRevisionsResponse): string {
  if (changedFiles === 0) {
    return "The code is the same";
  }
  const lines = [
    ...endpoints.map(({ kind, name }) => `${MARKS[kind]} endpoint ${plain(name)}`),
    ...files.map(({ kind, path, sizeBytes, baseSizeBytes }) => {
      const sizes =
        kind === ChangeKind.CHANGED ? [baseSizeBytes, sizeBytes] : [sizeBytes || baseSizeBytes];
      return `${MARKS[kind]} ${plain(path)}  ${sizes.map((size) => inUnits(Number(size))).join(" to ")}`;
    }),
    ...(changedFiles > files.length ? [`and ${changedFiles - files.length} more files`] : []),
  ];
  return lines.join("\n");
}
