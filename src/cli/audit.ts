/** `tessera audit`: the audit log of an organization. */
import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { ListAuditEventsResponseSchema } from "../client/index.ts";
import {
  type CloudActions,
  callCommand,
  group,
  LIST_OPTIONS,
  type ListFlags,
  mentionMore,
  readPages,
} from "./command.ts";
import { moment, table } from "./output.ts";

export function auditCommand(actions: CloudActions): Command {
  return group("audit", "See what happened in an organization.", [listCommand(actions)]);
}

function listCommand(actions: CloudActions): Command {
  return callCommand<ListFlags>("list", actions, {
    description: "List the audit log, newest first; for admins.",
    options: LIST_OPTIONS,
    examples: ["tessera audit list --limit 20", "tessera audit list --output json"],
    run: async (call, flags) => {
      const { organization } = call;
      const { items, nextPageToken } = await readPages(flags, async (page) => {
        const read = await call.client.organizations.listAuditEvents({ organization, ...page });
        return { items: read.auditEvents, nextPageToken: read.nextPageToken };
      });
      const list = create(ListAuditEventsResponseSchema, {
        auditEvents: [...items],
        nextPageToken,
      });
      call.show(ListAuditEventsResponseSchema, list, ({ auditEvents }) =>
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
        ),
      );
      mentionMore(call, nextPageToken);
    },
  });
}
