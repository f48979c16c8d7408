/** `tessera audit`: the audit log of an organization. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { ListAuditEventsResponseSchema } from "../../client/index.ts";
import { type CloudActions, callCommand, group, option } from "../command.ts";
import { parseDuration } from "../durations.ts";
import { LIST_OPTIONS, type ListFlags, showPages } from "../lists.ts";
import { moment } from "../output.ts";
import { table } from "../table.ts";

interface AuditFlags extends ListFlags {
  readonly actor?: string;
  readonly action?: string;
  readonly subject?: string;
  readonly newerThan?: string;
  readonly olderThan?: string;
}

export const auditCommand = group("audit", "See what happened in an organization.", [listCommand]);

function listCommand(actions: CloudActions): Command {
  return callCommand<AuditFlags>("list", actions, {
    description: "List the audit log, newest first; for admins.",
    options: [
      option("--actor <name>", "only of this person or token, as WHO shows it"),
      option("--action <action>", "only this, such as token.create, or all of a kind: token"),
      option("--subject <name>", "only about this, by name or id"),
      option("--newer-than <duration>", "only within this time, such as 7d"),
      option("--older-than <duration>", "only before this time"),
      ...LIST_OPTIONS,
    ],
    examples: [
      "tessera audit list --limit 20",
      "tessera audit list --action token --actor ada@example.com --newer-than 7d",
      "tessera audit list --output json",
    ],
    run: async (call, flags) => {
      const { organization } = call;
      const { actor = "", action = "", subject = "", newerThan, olderThan } = flags;
      const ago = (name: string, text: string) =>
        timestampFromMs(call.clock.now() - parseDuration(name, text));
      const filter = {
        ...{ organization, actor, action, subject },
        ...(newerThan !== undefined && { timeFrom: ago("--newer-than", newerThan) }),
        ...(olderThan !== undefined && { timeBefore: ago("--older-than", olderThan) }),
      };
      await showPages(call, flags, {
        ...{ schema: ListAuditEventsResponseSchema, field: "auditEvents" },
        read: (page) => call.client.organizations.listAuditEvents({ ...filter, ...page }),
        text: ({ auditEvents }) =>
          table(
            ["TIME", "ACTION", "WHO", "WHAT", "FROM", "DETAILS"],
            auditEvents.map(({ time, action, actor, subject, subjectId, address, details }) => [
              moment(time),
              action,
              actor,
              subject || subjectId,
              address,
              Object.entries(details)
                .map(([name, value]) => `${name}=${value}`)
                .join(" "),
            ]),
            { empty: "No events", drop: ["FROM", "DETAILS"] },
          ),
      });
    },
  });
}
